"""Operators: the public functions, and on import the Tensor methods made of them.

Written by ``scripts/make_ops_init.py`` from the operators' declarations; run it rather than change this file.
"""

# fmt: off
# isort: off
from mycelia.ops import array_ext as array_ext
from mycelia.ops import calls as calls
from mycelia.ops import collectives as collectives
from mycelia.ops import communication as communication
from mycelia.ops import declare as declare
from mycelia.ops import keywords as keywords
from mycelia.ops import layouts as layouts
from mycelia.ops import neural_ext as neural_ext
from mycelia.ops import operands as operands
from mycelia.ops import outputs as outputs
from mycelia.ops import pooling as pooling
from mycelia.ops import primitive as primitive
from mycelia.ops import recurrence as recurrence
from mycelia.ops import reduction_ext as reduction_ext
from mycelia.ops import registry as registry
from mycelia.ops import scatter as _scatter_module  # noqa: F401
from mycelia.ops import simple_recurrence as simple_recurrence
from mycelia.ops.activation import (
    celu, elu, elu_ext, fast_gelu, gelu, glu, logsigmoid, mish, selu, sigmoid, silu, softplus, softsign, swiglu,
    tanhshrink,
)
from mycelia.ops.adaptive_pooling import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    adaptive_max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from mycelia.ops.arithmetic import (
    add, addcdiv, addcmul, addn, div, floor_div, floor_divide, floor_mod, fmod, lerp, mul, neg, positive, remainder,
    sub, true_divide, truncate_div, truncate_mod,
)
from mycelia.ops.attention import flash_attention_score
from mycelia.ops.axes import (
    atleast_1d, atleast_2d, atleast_3d, dyn_shape, expand_dims, numel, rank, shape as _shape, size, squeeze, unsqueeze,
)
from mycelia.ops.batch_normalization import batch_norm
from mycelia.ops.bessel import bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0, bessel_y1
from mycelia.ops.bitwise import (
    bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, population_count,
)
from mycelia.ops.candidate_sampling import log_uniform_candidate_sampler, uniform_candidate_sampler
from mycelia.ops.casting import cast, type_as
from mycelia.ops.combinatorics import cartesian_prod, combinations
from mycelia.ops.comparison import allclose, approximate_equal, eq, equal_ext, ge, gt, isclose, le, lt, ne
from mycelia.ops.complex_numbers import angle, complex, imag, is_complex, is_floating_point, polar, real, view_as_real
from mycelia.ops.contraction import batch_dot, bidense, cross, einsum, kron, multi_dot, tensor_dot, vecdot
from mycelia.ops.convolution import (
    conv1d, conv2d, conv3d, conv3d_transpose, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)
from mycelia.ops.creation import (
    empty, empty_like, eps, eye, fill, fills, from_numpy, full, full_like, meshgrid, meshgrid_ext, ones, ones_like,
    scalar_to_tensor, tensor, tril_indices, triu_indices, zeros, zeros_like,
)
from mycelia.ops.cross_entropy import cross_entropy, nll_loss
from mycelia.ops.ctc import ctc_greedy_decoder, ctc_loss
from mycelia.ops.cumulative import cummax, cummin, cumprod, cumsum, diff, logcumsumexp
from mycelia.ops.decompositions import eig, eigvals, geqrf, lstsq, lu_solve, lu_unpack, orgqr, ormqr, pinv, qr, svd
from mycelia.ops.deformable_convolution import deformable_conv2d
from mycelia.ops.diagonals import (
    diag, diag_embed, diag_ext, diagflat, diagonal, diagonal_scatter, fill_diagonal, matrix_band_part, tril, triu,
)
from mycelia.ops.distance import cdist, pdist
from mycelia.ops.distributions import (
    choice_with_mask, gamma, laplace, multinomial, multinomial_with_replacement, poisson, random_categorical,
    random_gamma, random_poisson, randperm, shuffle, standard_laplace,
)
from mycelia.ops.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from mycelia.ops.elementary import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, conj, cos, cosh, deg2rad, exp, exp2, expm1, log, log1p, log2,
    log10, rad2deg, rsqrt, sin, sinh, sqrt, tan, tanh,
)
from mycelia.ops.extremum import fmax, fmin, maximum, minimum
from mycelia.ops.fractional_pooling import fractional_max_pool2d, fractional_max_pool3d
from mycelia.ops.grid_sampling import affine_grid, grid_sample
from mycelia.ops.in_place import clamp_, elu_, erfinv_, hardtanh_, relu_, sigmoid_, silu_, tanh_, threshold_, zero_
from mycelia.ops.indexing import gather, gather_d, gather_elements, gather_nd, index_select, take, take_along_dim
from mycelia.ops.integers import gcd, lcm
from mycelia.ops.integration import trapz
from mycelia.ops.interpolation import channel_shuffle, interpolate, pixel_shuffle, pixel_unshuffle, upsample
from mycelia.ops.joining import (
    block_diag, chunk, column_stack, concat, dsplit, dstack, hsplit, hstack, split, stack, tensor_split, tuple_to_array,
    unbind, unstack, vsplit, vstack,
)
from mycelia.ops.legacy.arrays import (
    BartlettWindow, BatchToSpace, BatchToSpaceND, BatchToSpaceNDV2, BlackmanWindow, BroadcastTo, Cast, ChannelShuffle,
    CheckNumerics, Col2Im, Concat, ConjugateTranspose, DType, DepthToSpace, Diag, DiagPart, DynamicShape, Expand,
    ExpandDims, Eye, Fill, FillDiagonal, FillV2, Fills, Flatten, HammingWindow, Identity, IdentityN, Im2Col,
    InvertPermutation, LinSpace, LogSpace, MatrixBandPart, Meshgrid, MirrorPad, Ones, OnesLike, Pack, Pad, PadV3,
    Padding, ParallelConcat, Range, Rank, Reshape, Reusing, ReverseV2, Roll, ScalarCast, ScalarToArray, ScalarToTensor,
    Shape, Size, Slice, SpaceToBatch, SpaceToBatchND, SpaceToDepth, Split, SplitV, SplitWithSize, Squeeze, Stack,
    StackExt, StridedSlice, TensorShape, TensorToScalar, TensorToTuple, Tile, Transpose, TransposeExtView,
    TransposeView, Tril, TrilIndices, Triu, TriuIndices, TupleToArray, Unpack, UnravelIndex, Unstack, Zeros, ZerosLike,
)
from mycelia.ops.legacy.clipping import clip_by_global_norm, clip_by_norm
from mycelia.ops.legacy.collectives import (
    AllGather, AllGatherV, AllReduce, AlltoAll, AlltoAllV, AlltoAllVC, Barrier, BatchISendIRecv, Broadcast,
    CollectiveGather, CollectiveScatter, NeighborExchange, NeighborExchangeV2, Receive, Reduce, ReduceOp, ReduceScatter,
    ReduceScatterV, Send,
)
from mycelia.ops.legacy.communication import (
    P2POp, TCPStore, all_gather, all_gather_into_tensor, all_gather_into_tensor_uneven, all_gather_object, all_reduce,
    all_to_all, all_to_all_single, all_to_all_v_c, barrier, batch_isend_irecv, broadcast, broadcast_object_list,
    destroy_process_group, gather_into_tensor, gather_object, get_backend, get_global_rank, get_group_rank,
    get_process_group_ranks, get_rank, get_world_size, init_process_group, irecv, is_available, is_initialized, isend,
    new_group, recv, recv_object_list, reduce, reduce_scatter, reduce_scatter_tensor, reduce_scatter_tensor_uneven,
    scatter_object_list, scatter_tensor, send, send_object_list, set_comm_ops_inplace,
)
from mycelia.ops.legacy.detection import (
    IOU, BoundingBoxDecode, BoundingBoxEncode, CheckValid, NMSWithMask, ROIAlign, bounding_box_decode,
    bounding_box_encode, check_valid, iou,
)
from mycelia.ops.legacy.effects import (
    Assign, AssignAdd, AssignSub, Depend, FloatStatus, HistogramSummary, HookBackward, ImageSummary, InsertGradientOf,
    NPUAllocFloatStatus, NPUClearFloatStatus, NPUGetFloatStatus, Partial, Print, ScalarSummary, StopGradient,
    TensorDump, TensorSummary, UpdateState, partial,
)
from mycelia.ops.legacy.elementwise import (
    GLU, ACos, Abs, AccumulateNV2, Acosh, Add, AddExt, AddN, Addcdiv, Addcmul, Angle, ApproximateEqual, Asin, Asinh,
    Atan, Atan2, Atanh, BesselI0, BesselI0e, BesselI1, BesselI1e, BesselJ0, BesselJ1, BesselK0, BesselK0e, BesselK1,
    BesselK1e, BesselY0, BesselY1, BitwiseAnd, BitwiseOr, BitwiseXor, CeLU, Ceil, Complex, ComplexAbs, Conj, Cos, Cosh,
    Digamma, Div, DivNoNan, Elu, Eps, Equal, EqualCount, Erf, Erfc, Erfinv, Exp, Expm1, FastGeLU, FastGelu, Floor,
    FloorDiv, FloorMod, Fmax, Fmin, FmodScalar, Gcd, GeLU, Gelu, Greater, GreaterEqual, HShrink, HSigmoid, HSwish,
    Heaviside, Hypot, Igamma, Igammac, Imag, Inv, Invert, IsClose, IsFinite, IsInf, IsNan, Lcm, LeftShift, Lerp,
    LerpScalar, Less, LessEqual, Lgamma, Log, Log1p, LogicalAnd, LogicalNot, LogicalOr, LogicalXor, Logit, Maximum,
    Minimum, Mish, Mod, Mul, MulNoNan, Mvlgamma, NanToNum, Neg, NextAfter, NotEqual, PReLU, Polar, Polygamma,
    PopulationCount, Pow, ReLU, ReLU6, Real, RealDiv, Reciprocal, RightShift, Rint, Round, Rsqrt, SeLU, Select, SiLU,
    Sigmoid, Sign, Sin, Sinc, Sinh, SoftShrink, Softplus, Softsign, Sqrt, Square, SquaredDifference, Sub, SubExt,
    Swiglu, Tan, Tanh, TensorAdd, Trunc, TruncateDiv, TruncateMod, Xdivy, Xlogy, Zeta,
)
from mycelia.ops.legacy.gathering import (
    EmbeddingLookup, Gather, GatherD, GatherNd, GatherV2, IndexAdd, IndexFill, IndexPut, IndexSelect, InplaceAdd,
    InplaceIndexAdd, InplaceSub, InplaceUpdate, InplaceUpdateV2, MaskedFill, MaskedScatter, OneHot, ReverseSequence,
    Scatter, ScatterAdd, ScatterDiv, ScatterMax, ScatterMin, ScatterMul, ScatterNd, ScatterNdAdd, ScatterNdDiv,
    ScatterNdMax, ScatterNdMin, ScatterNdMul, ScatterNdSub, ScatterNdUpdate, ScatterNonAliasingAdd, ScatterSub,
    ScatterUpdate, SegmentMax, SegmentMean, SegmentMin, SegmentProd, SegmentSum, SparseGatherV2, TensorScatterAdd,
    TensorScatterDiv, TensorScatterElements, TensorScatterMax, TensorScatterMin, TensorScatterMul, TensorScatterSub,
    TensorScatterUpdate, UnsortedSegmentMax, UnsortedSegmentMin, UnsortedSegmentProd, UnsortedSegmentSum,
)
from mycelia.ops.legacy.host_code import Custom, PyFunc
from mycelia.ops.legacy.images import (
    AffineGrid, GridSampler2D, GridSampler3D, ResizeBilinearV2, ResizeLinear1D, ResizeNearestNeighbor,
    ResizeNearestNeighborV2, UpsampleNearest3D, UpsampleTrilinear3D,
)
from mycelia.ops.legacy.linear_algebra import (
    Cdist, Cholesky, CholeskyInverse, CholeskySolve, Cross, Eig, Geqrf, LogMatrixDeterminant, Lstsq, LuSolve, LuUnpack,
    MatrixDeterminant, MatrixExp, MatrixInverse, MatrixPower, MatrixSolve, MatrixTriangularSolve, NuclearNorm, Orgqr,
    Ormqr, Pdist, Qr, Svd, Trace,
)
from mycelia.ops.legacy.losses import (
    BCEWithLogitsLoss, BinaryCrossEntropy, CTCLossV2, KLDivLoss, MultiMarginLoss, MultilabelMarginLoss, NLLLoss,
    SigmoidCrossEntropyWithLogits, SmoothL1Loss, SoftMarginLoss, SoftmaxCrossEntropyWithLogits,
    SparseSoftmaxCrossEntropyWithLogits, TripletMarginLoss,
)
from mycelia.ops.legacy.maps import (
    HyperMap, Map, MultitypeFuncGraph, add_flags, augassign_add, augassign_div, augassign_floordiv, augassign_mod,
    augassign_mul, augassign_sub, hyper_add, iter_converter, ms_hasnext, ms_next, tail, zip_operation,
)
from mycelia.ops.legacy.neural import (
    LRN, AdaptiveAvgPool2D, AdaptiveAvgPool3D, AdaptiveMaxPool2D, AdaptiveMaxPool3D, AvgPool, AvgPool3D, BatchMatMul,
    BatchMatMulExt, BatchNorm, BiasAdd, Conv2D, Conv2DBackpropInput, Conv2DTranspose, Conv3D, Conv3DTranspose, Dense,
    DepthwiseConv2dNative, Dropout, Dropout2D, Dropout3D, Einsum, FlashAttentionScore, Ger, LayerNorm, LogSoftmax,
    LogSoftmaxExt, MatMul, MatMulExt, MaxPool, MaxPool3D, MaxPool3DWithArgmax, MaxPoolWithArgmax, MaxPoolWithArgmaxV2,
    MaxUnpool2D, MaxUnpool3D, Outer, RmsNorm, Softmax, bias_add,
)
from mycelia.ops.legacy.optimizers import (
    SGD, Adam, AdamNoUpdateParam, AdamWeightDecay, ApplyAdaMax, ApplyAdadelta, ApplyAdagrad, ApplyAdagradDA,
    ApplyAdagradV2, ApplyAdamWithAmsgrad, ApplyAdamWithAmsgradV2, ApplyAddSign, ApplyCenteredRMSProp, ApplyFtrl,
    ApplyGradientDescent, ApplyKerasMomentum, ApplyMomentum, ApplyPowerSign, ApplyProximalAdagrad,
    ApplyProximalGradientDescent, ApplyRMSProp, FusedSparseAdam, FusedSparseFtrl, FusedSparseLazyAdam,
    FusedSparseProximalAdagrad, LARSUpdate, SparseApplyAdadelta, SparseApplyAdagrad, SparseApplyAdagradV2,
    SparseApplyFtrl, SparseApplyFtrlV2, SparseApplyProximalAdagrad, SparseApplyRMSProp,
)
from mycelia.ops.legacy.primitive import (
    Primitive, PrimitiveWithCheck, PrimitiveWithInfer, constexpr, prim_arg_register, prim_attr_register,
)
from mycelia.ops.legacy.python_values import (
    array_to_scalar, bool_and, bool_eq, bool_not, bool_or, dict_getitem, dict_setitem, dtype, hastype, in_dict, is_,
    is_not, isconstant, list_equal, list_getitem, list_len, list_setitem, make_dict, make_list, make_range, make_slice,
    make_tuple, mixed_precision_cast, not_in_dict, reshape_, scalar_add, scalar_cast, scalar_div, scalar_eq,
    scalar_floordiv, scalar_ge, scalar_gt, scalar_le, scalar_log, scalar_lt, scalar_max, scalar_min, scalar_mod,
    scalar_mul, scalar_ne, scalar_pow, scalar_sub, scalar_to_array, scalar_uadd, scalar_usub, shape_, shape_mul,
    stop_gradient_, string_concat, string_eq, tensor_range, tuple_div, tuple_equal, tuple_getitem, tuple_len,
    tuple_reversed, tuple_setitem, typeof,
)
from mycelia.ops.legacy.randomness import (
    Bernoulli, DropoutDoMask, DropoutGenMask, Gamma, LogNormalReverse, Multinomial, MultinomialWithReplacement, Poisson,
    RandomCategorical, RandomChoiceWithMask, RandomGamma, RandomPoisson, RandomShuffle, Randperm, RandpermV2,
    StandardLaplace, StandardNormal, TruncatedNormal, UniformInt, UniformReal,
)
from mycelia.ops.legacy.reductions import (
    ArgMaxWithValue, ArgMinWithValue, Argmax, Argmin, Bincount, Bucketize, CountNonZero, CumProd, CumSum, Cummax,
    Cummin, CumsumExt, CumulativeLogsumexp, EuclideanNorm, Histogram, HistogramFixedWidth, InTopK, L2Loss, L2Normalize,
    ListDiff, LowerBound, LpNorm, MaskedSelect, MeanExt, Median, NonZero, NthElement, Quantile, ReduceAll, ReduceAny,
    ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceStd, ReduceSum, Renorm, SearchSorted, Sort, SortExt,
    SquareSumAll, SumExt, TopK, TopkExt, Unique, UniqueConsecutive, UniqueWithPad, UpperBound,
)
from mycelia.ops.linalg import (
    cholesky, cholesky_inverse, cholesky_solve, det, inverse, logdet, matrix_exp, matrix_power, matrix_solve, slogdet,
    solve, trace, triangular_solve,
)
from mycelia.ops.linear import addbmm, addmm, addmv, addr, baddbmm, bmm, dense, dot, inner, matmul, mm, mv, outer, vdot
from mycelia.ops.local_normalization import lrn
from mycelia.ops.logical import (
    is_nonzero, is_tensor, isfinite, isinf, isnan, isneginf, isposinf, isreal, logical_and, logical_not, logical_or,
    logical_xor, signbit,
)
from mycelia.ops.logsumexp import logsumexp
from mycelia.ops.lookup import embedding, one_hot
from mycelia.ops.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, gaussian_nll_loss, hinge_embedding_loss, huber_loss, kl_div,
    l1_loss, margin_ranking_loss, mse_loss, smooth_l1_loss, soft_margin_loss,
)
from mycelia.ops.margin_losses import (
    cosine_embedding_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss, triplet_margin_loss,
)
from mycelia.ops.matrix_diagonals import matrix_diag, matrix_diag_part, matrix_set_diag
from mycelia.ops.matrix_norms import cond, cosine_similarity, dist, matrix_norm, normalize, renorm
from mycelia.ops.max_avg_pooling import (
    avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, max_pool1d, max_pool2d, max_pool3d,
)
from mycelia.ops.normalization import add_layer_norm, add_rms_norm, group_norm, instance_norm, layer_norm, rms_norm
from mycelia.ops.norms import norm, vector_norm
from mycelia.ops.padding import mirror_pad, pad, padding
from mycelia.ops.parameter_updates import (
    index_add, inplace_add, inplace_index_add, inplace_sub, inplace_update, scatter_add, scatter_div, scatter_max,
    scatter_min, scatter_mul, scatter_nd_add, scatter_nd_div, scatter_nd_max, scatter_nd_min, scatter_nd_mul,
    scatter_nd_sub, scatter_nd_update, scatter_sub, scatter_update,
)
from mycelia.ops.patches import (
    batch_to_space_nd, col2im, depth_to_space, fold, space_to_batch_nd, space_to_depth, unfold,
)
from mycelia.ops.power import float_power, hypot, inv, ldexp, pow, reciprocal, square
from mycelia.ops.random import (
    bernoulli, normal, rand, rand_like, randint, randint_like, randn, randn_like, standard_normal, uniform,
)
from mycelia.ops.rearrange import flip, fliplr, flipud, repeat_elements, repeat_interleave, reverse, roll, rot90, tile
from mycelia.ops.rectifiers import (
    hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, leaky_relu_ext, prelu, relu, relu6, rrelu, softshrink,
    threshold, threshold_ext,
)
from mycelia.ops.reduce_operators import reduce_max, reduce_mean, reduce_min, reduce_sum
from mycelia.ops.reduction import all, any, count_nonzero, mean, nanmean, nansum, prod, sum
from mycelia.ops.reduction_extrema import amax, amin, aminmax, argmax, argmin, max, min
from mycelia.ops.rotary import rotary_position_embedding
from mycelia.ops.rounding import (
    abs, ceil, copysign, floor, frac, heaviside, nan_to_num, nextafter, round, sgn, sign, trunc,
)
from mycelia.ops.searching import (
    argwhere, masked_select, nonzero, unique, unique_consecutive, unique_ext, unique_with_pad,
)
from mycelia.ops.segments import (
    sparse_segment_mean, unsorted_segment_max, unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sum,
)
from mycelia.ops.selection import clamp, clip_by_value, isin, masked_fill, select_ext, where
from mycelia.ops.sequence_lengths import reverse_sequence, sequence_mask
from mycelia.ops.sequences import arange, linspace, linspace_ext, logspace, range, vander
from mycelia.ops.shape import (
    adjoint, broadcast_tensors, broadcast_to, expand, expand_as, flatten, moveaxis, movedim, permute, ravel, reshape,
    reshape_as, swapaxes, swapdims, t, transpose, view_as,
)
from mycelia.ops.slicing import dynamic_slice, dynamic_update_slice, narrow, slice
from mycelia.ops.softmax import gumbel_softmax, log_softmax, softmax, softmin
from mycelia.ops.sorting import argsort, bucketize, intopk, kthvalue, msort, searchsorted, sort, top_k, topk
from mycelia.ops.special import (
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, digamma, erf, erfc, erfinv, i0, igamma, igammac, lgamma, logaddexp,
    logaddexp2, logit, mvlgamma, polygamma, sinc, xdivy, xlogy, zeta,
)
from mycelia.ops.state import assign, assign_add, assign_sub, deepcopy, depend, identity, print_, stop_gradient
from mycelia.ops.statistics import (
    bincount, corrcoef, cov, histc, median, nanmedian, nanquantile, quantile, std, std_mean, var, var_mean,
)
from mycelia.ops.subscript import strided_slice
from mycelia.ops.tensor_updates import (
    index_copy, index_fill, index_put, masked_scatter, scatter as _scatter, scatter_add_ext, scatter_nd, select_scatter,
    slice_scatter, tensor_scatter_add, tensor_scatter_div, tensor_scatter_elements, tensor_scatter_max,
    tensor_scatter_min, tensor_scatter_mul, tensor_scatter_sub, tensor_scatter_update,
)
from mycelia.ops.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window

absolute = abs
accumulate_n = addn
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
cat = concat
chain_matmul = multi_dot
clip = clamp
diff_ext = diff
divide = div
equal = eq
fix = trunc
float_power_ext = float_power
floordiv = floor_divide
floormod = floor_mod
ger = outer
greater = gt
greater_equal = ge
inplace_elu = elu_
inplace_sigmoid = sigmoid_
inplace_silu = silu_
invert = bitwise_not
isnan_ext = isnan
less = lt
less_equal = le
log_matrix_determinant = slogdet
matrix_determinant = det
matrix_inverse = inverse
multiply = mul
negative = neg
not_equal = ne
pows = pow
row_stack = vstack
scatter = _scatter
select = where
shape = _shape
soft_shrink = softshrink
subtract = sub
tensor_add = add
tensor_div = div
tensor_exp = exp
tensor_expm1 = expm1
tensor_floordiv = floor_divide
tensor_ge = ge
tensor_gt = gt
tensor_le = le
tensor_lt = lt
tensor_mod = floor_mod
tensor_mul = mul
tensor_muls = mul
tensor_pow = pow
tensor_slice = slice
tensor_sub = sub
tensordot = tensor_dot

__all__ = [
    "GLU", "IOU", "LRN", "SGD", "ACos", "Abs", "AccumulateNV2", "Acosh", "Adam", "AdamNoUpdateParam", "AdamWeightDecay",
    "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "Add", "AddExt", "AddN",
    "Addcdiv", "Addcmul", "AffineGrid", "AllGather", "AllGatherV", "AllReduce", "AlltoAll", "AlltoAllV", "AlltoAllVC",
    "Angle", "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2", "ApplyAddSign", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyGradientDescent",
    "ApplyKerasMomentum", "ApplyMomentum", "ApplyPowerSign", "ApplyProximalAdagrad", "ApplyProximalGradientDescent",
    "ApplyRMSProp", "ApproximateEqual", "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "Asin", "Asinh",
    "Assign", "AssignAdd", "AssignSub", "Atan", "Atan2", "Atanh", "AvgPool", "AvgPool3D", "BCEWithLogitsLoss",
    "Barrier", "BartlettWindow", "BatchISendIRecv", "BatchMatMul", "BatchMatMulExt", "BatchNorm", "BatchToSpace",
    "BatchToSpaceND", "BatchToSpaceNDV2", "Bernoulli", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0",
    "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "BiasAdd",
    "BinaryCrossEntropy", "Bincount", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BlackmanWindow", "BoundingBoxDecode",
    "BoundingBoxEncode", "Broadcast", "BroadcastTo", "Bucketize", "CTCLossV2", "Cast", "Cdist", "CeLU", "Ceil",
    "ChannelShuffle", "CheckNumerics", "CheckValid", "Cholesky", "CholeskyInverse", "CholeskySolve", "Col2Im",
    "CollectiveGather", "CollectiveScatter", "Complex", "ComplexAbs", "Concat", "Conj", "ConjugateTranspose", "Conv2D",
    "Conv2DBackpropInput", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Cos", "Cosh", "CountNonZero", "Cross",
    "CumProd", "CumSum", "Cummax", "Cummin", "CumsumExt", "CumulativeLogsumexp", "Custom", "DType", "Dense", "Depend",
    "DepthToSpace", "DepthwiseConv2dNative", "Diag", "DiagPart", "Digamma", "Div", "DivNoNan", "Dropout", "Dropout2D",
    "Dropout3D", "DropoutDoMask", "DropoutGenMask", "DynamicShape", "Eig", "Einsum", "Elu", "EmbeddingLookup", "Eps",
    "Equal", "EqualCount", "Erf", "Erfc", "Erfinv", "EuclideanNorm", "Exp", "Expand", "ExpandDims", "Expm1", "Eye",
    "FastGeLU", "FastGelu", "Fill", "FillDiagonal", "FillV2", "Fills", "FlashAttentionScore", "Flatten", "FloatStatus",
    "Floor", "FloorDiv", "FloorMod", "Fmax", "Fmin", "FmodScalar", "FusedSparseAdam", "FusedSparseFtrl",
    "FusedSparseLazyAdam", "FusedSparseProximalAdagrad", "Gamma", "Gather", "GatherD", "GatherNd", "GatherV2", "Gcd",
    "GeLU", "Gelu", "Geqrf", "Ger", "Greater", "GreaterEqual", "GridSampler2D", "GridSampler3D", "HShrink", "HSigmoid",
    "HSwish", "HammingWindow", "Heaviside", "Histogram", "HistogramFixedWidth", "HistogramSummary", "HookBackward",
    "HyperMap", "Hypot", "Identity", "IdentityN", "Igamma", "Igammac", "Im2Col", "Imag", "ImageSummary", "InTopK",
    "IndexAdd", "IndexFill", "IndexPut", "IndexSelect", "InplaceAdd", "InplaceIndexAdd", "InplaceSub", "InplaceUpdate",
    "InplaceUpdateV2", "InsertGradientOf", "Inv", "Invert", "InvertPermutation", "IsClose", "IsFinite", "IsInf",
    "IsNan", "KLDivLoss", "L2Loss", "L2Normalize", "LARSUpdate", "LayerNorm", "Lcm", "LeftShift", "Lerp", "LerpScalar",
    "Less", "LessEqual", "Lgamma", "LinSpace", "ListDiff", "Log", "Log1p", "LogMatrixDeterminant", "LogNormalReverse",
    "LogSoftmax", "LogSoftmaxExt", "LogSpace", "LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor", "Logit",
    "LowerBound", "LpNorm", "Lstsq", "LuSolve", "LuUnpack", "Map", "MaskedFill", "MaskedScatter", "MaskedSelect",
    "MatMul", "MatMulExt", "MatrixBandPart", "MatrixDeterminant", "MatrixExp", "MatrixInverse", "MatrixPower",
    "MatrixSolve", "MatrixTriangularSolve", "MaxPool", "MaxPool3D", "MaxPool3DWithArgmax", "MaxPoolWithArgmax",
    "MaxPoolWithArgmaxV2", "MaxUnpool2D", "MaxUnpool3D", "Maximum", "MeanExt", "Median", "Meshgrid", "Minimum",
    "MirrorPad", "Mish", "Mod", "Mul", "MulNoNan", "MultiMarginLoss", "MultilabelMarginLoss", "Multinomial",
    "MultinomialWithReplacement", "MultitypeFuncGraph", "Mvlgamma", "NLLLoss", "NMSWithMask", "NPUAllocFloatStatus",
    "NPUClearFloatStatus", "NPUGetFloatStatus", "NanToNum", "Neg", "NeighborExchange", "NeighborExchangeV2",
    "NextAfter", "NonZero", "NotEqual", "NthElement", "NuclearNorm", "OneHot", "Ones", "OnesLike", "Orgqr", "Ormqr",
    "Outer", "P2POp", "PReLU", "Pack", "Pad", "PadV3", "Padding", "ParallelConcat", "Partial", "Pdist", "Poisson",
    "Polar", "Polygamma", "PopulationCount", "Pow", "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "Print",
    "PyFunc", "Qr", "Quantile", "ROIAlign", "RandomCategorical", "RandomChoiceWithMask", "RandomGamma", "RandomPoisson",
    "RandomShuffle", "Randperm", "RandpermV2", "Range", "Rank", "ReLU", "ReLU6", "Real", "RealDiv", "Receive",
    "Reciprocal", "Reduce", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceOp", "ReduceProd",
    "ReduceScatter", "ReduceScatterV", "ReduceStd", "ReduceSum", "Renorm", "Reshape", "ResizeBilinearV2",
    "ResizeLinear1D", "ResizeNearestNeighbor", "ResizeNearestNeighborV2", "Reusing", "ReverseSequence", "ReverseV2",
    "RightShift", "Rint", "RmsNorm", "Roll", "Round", "Rsqrt", "ScalarCast", "ScalarSummary", "ScalarToArray",
    "ScalarToTensor", "Scatter", "ScatterAdd", "ScatterDiv", "ScatterMax", "ScatterMin", "ScatterMul", "ScatterNd",
    "ScatterNdAdd", "ScatterNdDiv", "ScatterNdMax", "ScatterNdMin", "ScatterNdMul", "ScatterNdSub", "ScatterNdUpdate",
    "ScatterNonAliasingAdd", "ScatterSub", "ScatterUpdate", "SeLU", "SearchSorted", "SegmentMax", "SegmentMean",
    "SegmentMin", "SegmentProd", "SegmentSum", "Select", "Send", "Shape", "SiLU", "Sigmoid",
    "SigmoidCrossEntropyWithLogits", "Sign", "Sin", "Sinc", "Sinh", "Size", "Slice", "SmoothL1Loss", "SoftMarginLoss",
    "SoftShrink", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "Softsign", "Sort", "SortExt", "SpaceToBatch",
    "SpaceToBatchND", "SpaceToDepth", "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradV2",
    "SparseApplyFtrl", "SparseApplyFtrlV2", "SparseApplyProximalAdagrad", "SparseApplyRMSProp", "SparseGatherV2",
    "SparseSoftmaxCrossEntropyWithLogits", "Split", "SplitV", "SplitWithSize", "Sqrt", "Square", "SquareSumAll",
    "SquaredDifference", "Squeeze", "Stack", "StackExt", "StandardLaplace", "StandardNormal", "StopGradient",
    "StridedSlice", "Sub", "SubExt", "SumExt", "Svd", "Swiglu", "TCPStore", "Tan", "Tanh", "TensorAdd", "TensorDump",
    "TensorScatterAdd", "TensorScatterDiv", "TensorScatterElements", "TensorScatterMax", "TensorScatterMin",
    "TensorScatterMul", "TensorScatterSub", "TensorScatterUpdate", "TensorShape", "TensorSummary", "TensorToScalar",
    "TensorToTuple", "Tile", "TopK", "TopkExt", "Trace", "Transpose", "TransposeExtView", "TransposeView", "Tril",
    "TrilIndices", "TripletMarginLoss", "Triu", "TriuIndices", "Trunc", "TruncateDiv", "TruncateMod", "TruncatedNormal",
    "TupleToArray", "UniformInt", "UniformReal", "Unique", "UniqueConsecutive", "UniqueWithPad", "Unpack",
    "UnravelIndex", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "Unstack",
    "UpdateState", "UpperBound", "UpsampleNearest3D", "UpsampleTrilinear3D", "Xdivy", "Xlogy", "Zeros", "ZerosLike",
    "Zeta", "abs", "absolute", "accumulate_n", "acos", "acosh", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "add", "add_flags",
    "add_layer_norm", "add_rms_norm", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addn", "addr", "adjoint",
    "affine_grid", "all", "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven", "all_gather_object",
    "all_reduce", "all_to_all", "all_to_all_single", "all_to_all_v_c", "allclose", "alpha_dropout", "amax", "amin",
    "aminmax", "angle", "any", "approximate_equal", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere", "array_to_scalar", "asin", "asinh", "assign",
    "assign_add", "assign_sub", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "augassign_add",
    "augassign_div", "augassign_floordiv", "augassign_mod", "augassign_mul", "augassign_sub", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "baddbmm", "barrier", "bartlett_window", "batch_dot", "batch_isend_irecv", "batch_norm",
    "batch_to_space_nd", "bernoulli", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1",
    "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "bias_add", "bidense",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm",
    "bool_and", "bool_eq", "bool_not", "bool_or", "bounding_box_decode", "bounding_box_encode", "broadcast",
    "broadcast_object_list", "broadcast_tensors", "broadcast_to", "bucketize", "cartesian_prod", "cast", "cat", "cbrt",
    "cdist", "ceil", "celu", "chain_matmul", "channel_shuffle", "check_valid", "choice_with_mask", "cholesky",
    "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clamp_", "clip", "clip_by_global_norm", "clip_by_norm",
    "clip_by_value", "col2im", "column_stack", "combinations", "complex", "concat", "cond", "conj", "constexpr",
    "conv1d", "conv2d", "conv3d", "conv3d_transpose", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "copysign", "corrcoef", "cos", "cosh", "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cov",
    "cross", "cross_entropy", "ctc_greedy_decoder", "ctc_loss", "cummax", "cummin", "cumprod", "cumsum", "deepcopy",
    "deformable_conv2d", "deg2rad", "dense", "depend", "depth_to_space", "destroy_process_group", "det", "diag",
    "diag_embed", "diag_ext", "diagflat", "diagonal", "diagonal_scatter", "dict_getitem", "dict_setitem", "diff",
    "diff_ext", "digamma", "dist", "div", "divide", "dot", "dropout", "dropout1d", "dropout2d", "dropout3d", "dsplit",
    "dstack", "dtype", "dyn_shape", "dynamic_slice", "dynamic_update_slice", "eig", "eigvals", "einsum", "elu", "elu_",
    "elu_ext", "embedding", "empty", "empty_like", "eps", "eq", "equal", "equal_ext", "erf", "erfc", "erfinv",
    "erfinv_", "exp", "exp2", "expand", "expand_as", "expand_dims", "expm1", "eye", "fast_gelu",
    "feature_alpha_dropout", "fill", "fill_diagonal", "fills", "fix", "flash_attention_score", "flatten", "flip",
    "fliplr", "flipud", "float_power", "float_power_ext", "floor", "floor_div", "floor_divide", "floor_mod", "floordiv",
    "floormod", "fmax", "fmin", "fmod", "fold", "frac", "fractional_max_pool2d", "fractional_max_pool3d", "from_numpy",
    "full", "full_like", "gamma", "gather", "gather_d", "gather_elements", "gather_into_tensor", "gather_nd",
    "gather_object", "gaussian_nll_loss", "gcd", "ge", "gelu", "geqrf", "ger", "get_backend", "get_global_rank",
    "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size", "glu", "greater", "greater_equal",
    "grid_sample", "group_norm", "gt", "gumbel_softmax", "hamming_window", "hann_window", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hardtanh_", "hastype", "heaviside", "hinge_embedding_loss", "histc", "hsplit", "hstack",
    "huber_loss", "hyper_add", "hypot", "i0", "identity", "igamma", "igammac", "imag", "in_dict", "index_add",
    "index_copy", "index_fill", "index_put", "index_select", "init_process_group", "inner", "inplace_add",
    "inplace_elu", "inplace_index_add", "inplace_sigmoid", "inplace_silu", "inplace_sub", "inplace_update",
    "instance_norm", "interpolate", "intopk", "inv", "inverse", "invert", "iou", "irecv", "is_", "is_available",
    "is_complex", "is_floating_point", "is_initialized", "is_nonzero", "is_not", "is_tensor", "isclose", "isconstant",
    "isend", "isfinite", "isin", "isinf", "isnan", "isnan_ext", "isneginf", "isposinf", "isreal", "iter_converter",
    "kaiser_window", "kl_div", "kron", "kthvalue", "l1_loss", "laplace", "layer_norm", "lcm", "ldexp", "le",
    "leaky_relu", "leaky_relu_ext", "lerp", "less", "less_equal", "lgamma", "linspace", "linspace_ext", "list_equal",
    "list_getitem", "list_len", "list_setitem", "log", "log1p", "log2", "log10", "log_matrix_determinant",
    "log_softmax", "log_uniform_candidate_sampler", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logit", "logsigmoid", "logspace", "logsumexp", "lp_pool1d",
    "lp_pool2d", "lrn", "lstsq", "lt", "lu_solve", "lu_unpack", "make_dict", "make_list", "make_range", "make_slice",
    "make_tuple", "margin_ranking_loss", "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_band_part",
    "matrix_determinant", "matrix_diag", "matrix_diag_part", "matrix_exp", "matrix_inverse", "matrix_norm",
    "matrix_power", "matrix_set_diag", "matrix_solve", "max", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d",
    "max_unpool2d", "max_unpool3d", "maximum", "mean", "median", "meshgrid", "meshgrid_ext", "min", "minimum",
    "mirror_pad", "mish", "mixed_precision_cast", "mm", "moveaxis", "movedim", "ms_hasnext", "ms_next", "mse_loss",
    "msort", "mul", "multi_dot", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "multinomial", "multinomial_with_replacement", "multiply", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian",
    "nanquantile", "nansum", "narrow", "ne", "neg", "negative", "new_group", "nextafter", "nll_loss", "nonzero", "norm",
    "normal", "normalize", "not_equal", "not_in_dict", "numel", "one_hot", "ones", "ones_like", "orgqr", "ormqr",
    "outer", "pad", "padding", "partial", "pdist", "permute", "pinv", "pixel_shuffle", "pixel_unshuffle", "poisson",
    "polar", "polygamma", "population_count", "positive", "pow", "pows", "prelu", "prim_arg_register",
    "prim_attr_register", "print_", "prod", "qr", "quantile", "rad2deg", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random_categorical", "random_gamma", "random_poisson", "randperm", "range", "rank", "ravel",
    "real", "reciprocal", "recv", "recv_object_list", "reduce", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_uneven", "reduce_sum", "relu", "relu6", "relu_",
    "remainder", "renorm", "repeat_elements", "repeat_interleave", "reshape", "reshape_", "reshape_as", "reverse",
    "reverse_sequence", "rms_norm", "roll", "rot90", "rotary_position_embedding", "round", "row_stack", "rrelu",
    "rsqrt", "scalar_add", "scalar_cast", "scalar_div", "scalar_eq", "scalar_floordiv", "scalar_ge", "scalar_gt",
    "scalar_le", "scalar_log", "scalar_lt", "scalar_max", "scalar_min", "scalar_mod", "scalar_mul", "scalar_ne",
    "scalar_pow", "scalar_sub", "scalar_to_array", "scalar_to_tensor", "scalar_uadd", "scalar_usub", "scatter",
    "scatter_add", "scatter_add_ext", "scatter_div", "scatter_max", "scatter_min", "scatter_mul", "scatter_nd",
    "scatter_nd_add", "scatter_nd_div", "scatter_nd_max", "scatter_nd_min", "scatter_nd_mul", "scatter_nd_sub",
    "scatter_nd_update", "scatter_object_list", "scatter_sub", "scatter_tensor", "scatter_update", "searchsorted",
    "select", "select_ext", "select_scatter", "selu", "send", "send_object_list", "sequence_mask",
    "set_comm_ops_inplace", "sgn", "shape", "shape_", "shape_mul", "shuffle", "sigmoid", "sigmoid_", "sign", "signbit",
    "silu", "silu_", "sin", "sinc", "sinh", "size", "slice", "slice_scatter", "slogdet", "smooth_l1_loss",
    "soft_margin_loss", "soft_shrink", "softmax", "softmin", "softplus", "softshrink", "softsign", "solve", "sort",
    "space_to_batch_nd", "space_to_depth", "sparse_segment_mean", "split", "sqrt", "square", "squeeze", "stack",
    "standard_laplace", "standard_normal", "std", "std_mean", "stop_gradient", "stop_gradient_", "strided_slice",
    "string_concat", "string_eq", "sub", "subtract", "sum", "svd", "swapaxes", "swapdims", "swiglu", "t", "tail",
    "take", "take_along_dim", "tan", "tanh", "tanh_", "tanhshrink", "tensor", "tensor_add", "tensor_div", "tensor_dot",
    "tensor_exp", "tensor_expm1", "tensor_floordiv", "tensor_ge", "tensor_gt", "tensor_le", "tensor_lt", "tensor_mod",
    "tensor_mul", "tensor_muls", "tensor_pow", "tensor_range", "tensor_scatter_add", "tensor_scatter_div",
    "tensor_scatter_elements", "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_mul", "tensor_scatter_sub",
    "tensor_scatter_update", "tensor_slice", "tensor_split", "tensor_sub", "tensordot", "threshold", "threshold_",
    "threshold_ext", "tile", "top_k", "topk", "trace", "transpose", "trapz", "triangular_solve", "tril", "tril_indices",
    "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "truncate_div", "truncate_mod", "tuple_div",
    "tuple_equal", "tuple_getitem", "tuple_len", "tuple_reversed", "tuple_setitem", "tuple_to_array", "type_as",
    "typeof", "unbind", "unfold", "uniform", "uniform_candidate_sampler", "unique", "unique_consecutive", "unique_ext",
    "unique_with_pad", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sum",
    "unsqueeze", "unstack", "upsample", "vander", "var", "var_mean", "vdot", "vecdot", "vector_norm", "view_as",
    "view_as_real", "vsplit", "vstack", "where", "xdivy", "xlogy", "zero_", "zeros", "zeros_like", "zeta",
    "zip_operation",
]
