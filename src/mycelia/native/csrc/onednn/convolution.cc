// Convolutions and their two gradients, by oneDNN; those by 3 x 3 kernels by products of tiles (`winograd.h`) where
// that is faster, unless the result is not finite.
//
// Images have their channels on the last axis or on the second, kernels are (out, in / groups, places...). oneDNN
// chooses the layout of the kernel; it is reordered at each call. Attributes: `kind` (0 the convolution, 1 the gradient
// of the image, 2 that of the kernel), `geometry`: spatial axes, then for each of them stride, padding before, padding
// after, dilation; then groups, whether channels are last, what is done to the result (`After`).
//
// The convolution takes image and kernel, then what `After` asks for: a bias, a gain and a shift for each channel, an
// image that is added; a relu comes last.
#include <numeric>

#include "onednn.h"
#include "relu.h"
#include "winograd.h"

namespace mycelia {
namespace {

using Memory = dnnl::memory;
enum Kind { kForward, kImage, kKernel };
enum After { kBias = 1, kGain = 2, kSum = 4, kRelu = 8 };

// The layout of an image of dims (batch, channels, places...).
Memory::desc Image(const Dims& dims, Memory::data_type type, bool last) {
  if (!last) return Memory::desc(dims, type, RowMajor(dims));
  Dims strides(dims.size());
  int64_t step = 1;
  strides[1] = step;
  step *= dims[1];
  for (size_t i = dims.size(); i-- > 2;) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return Memory::desc(dims, type, strides);
}

// (batch, places..., channels) as (batch, channels, places...)
Dims ChannelsSecond(Dims dims, bool last) {
  if (last) {
    dims.insert(dims.begin() + 1, dims.back());
    dims.pop_back();
  }
  return dims;
}

struct Made {
  dnnl::primitive primitive;
  Memory::desc image, kernel, result;               // as oneDNN wants them
  Memory::desc given_image, given_kernel, given_result;  // as they are given
  Memory::desc bias, channel;
};

// What a call is about: dims with channels second, and types.
struct Problem {
  Dims image, kernel, result;
  Memory::data_type type, kernel_type;
};

struct Geometry {
  Dims strides, before, after, dilates;
  int64_t groups, after_all;
  bool last;
};

Geometry Read(ffi::Span<const int64_t> values) {
  Geometry g;
  const int64_t n = values.size() > 0 ? values[0] : 0;
  if (n < 1 || n > 3 || static_cast<int64_t>(values.size()) != 4 * n + 4) {
    throw std::invalid_argument("malformed geometry");
  }
  const int64_t* at = values.begin() + 1;
  for (int64_t i = 0; i < n; ++i, at += 4) {
    g.strides.push_back(at[0]);
    g.before.push_back(at[1]);
    g.after.push_back(at[2]);
    g.dilates.push_back(at[3] - 1);
  }
  g.groups = at[0];
  g.last = at[1] != 0;
  g.after_all = at[2];
  return g;
}

Made Make(int64_t kind, const Dims& image, const Dims& kernel, const Dims& result, Memory::data_type type,
          Memory::data_type kernel_type, const Geometry& g) {
  Dims grouped = kernel;
  if (g.groups > 1) {
    grouped[0] /= g.groups;
    grouped.insert(grouped.begin(), g.groups);
  }
  Made made;
  made.given_image = Image(image, type, g.last);
  made.given_result = Image(result, type, g.last);
  made.given_kernel = Memory::desc(grouped, kernel_type, RowMajor(grouped));
  const Memory::desc x = Image(image, type, true), y = Image(result, type, true);
  const Memory::desc w(grouped, type, Memory::format_tag::any);
  const Memory::desc dw(grouped, kernel_type, Memory::format_tag::any);
  const Memory::desc b = (g.after_all & kBias) ? Memory::desc({kernel[0]}, Memory::data_type::f32, Memory::format_tag::x) : Memory::desc();
  Dims one(result.size(), 1);
  one[1] = result[1];
  made.channel = Memory::desc(one, Memory::data_type::f32, RowMajor(one));
  dnnl::primitive_attr attr;
  dnnl::post_ops after;
  if (g.after_all & kGain) {
    after.append_binary(dnnl::algorithm::binary_mul, made.channel);
    after.append_binary(dnnl::algorithm::binary_add, made.channel);
  }
  if (g.after_all & kSum) after.append_binary(dnnl::algorithm::binary_add, y);
  attr.set_post_ops(after);
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(Engine(), dnnl::prop_kind::forward_training, direct, x, w, b,
                                                          y, g.strides, g.dilates, g.before, g.after,
                                                          kind == kForward ? attr : dnnl::primitive_attr());
  made.bias = b;
  if (kind == kForward) {
    made.primitive = dnnl::convolution_forward(forward);
    made.image = forward.src_desc();
    made.kernel = forward.weights_desc();
    made.result = forward.dst_desc();
  } else if (kind == kImage) {
    const dnnl::convolution_backward_data::primitive_desc back(Engine(), direct, x, w, y, g.strides, g.dilates,
                                                               g.before, g.after, forward);
    made.primitive = dnnl::convolution_backward_data(back);
    made.image = back.diff_src_desc();
    made.kernel = back.weights_desc();
    made.result = back.diff_dst_desc();
  } else {
    const dnnl::convolution_backward_weights::primitive_desc back(Engine(), direct, x, dw, b, y, g.strides, g.dilates,
                                                                  g.before, g.after, forward);
    made.primitive = dnnl::convolution_backward_weights(back);
    made.image = back.src_desc();
    made.kernel = back.diff_weights_desc();
    made.result = back.diff_dst_desc();
  }
  return made;
}

// Where a result goes: into the buffer itself, or into scratch memory to be reordered from there.
Memory Place(const Memory::desc& given, void* data, const Memory::desc& wanted, int slot) {
  if (given == wanted) return Memory(given, Engine(), data);
  return Memory(wanted, Engine(), Scratch(slot, wanted.get_size()));
}

void Deliver(Memory made, const Memory::desc& given, void* data) {
  if (made.get_data_handle() == data) return;
  Memory to(given, Engine(), data);
  dnnl::reorder(made, to).execute(Stream(), made, to);
}

const Made& Found(int64_t kind, const Problem& p, ffi::Span<const int64_t> geometry) {
  Key key("conv");
  key.Add(kind);
  for (const Dims& dims : {p.image, p.kernel, p.result}) key.AddAll(dims);
  key.AddAll(geometry);
  key.Add(static_cast<int64_t>(p.type) * 64 + static_cast<int64_t>(p.kernel_type));
  return Cached<Made>(key, [&] {
    return Make(kind, p.image, p.kernel, p.result, p.type, p.kernel_type, Read(geometry));
  });
}

// The problem as one of a convolution by products of tiles, of the image or (kImage) of the result; whether it is one.
bool ByTiles(int64_t kind, const Problem& p, const Geometry& g, winograd::Shape* shape) {
  const bool plain = p.image.size() == 4 && g.last && g.groups == 1 && p.kernel[2] == 3 && p.kernel[3] == 3 &&
                     g.strides == Dims{1, 1} && g.dilates == Dims{0, 0} && p.type == Memory::data_type::f32 &&
                     p.kernel_type == Memory::data_type::f32;
  if (!plain) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (g.before[i] < 0 || g.after[i] < 0 || g.before[i] > 2 || g.after[i] > 2) return false;
  }
  *shape = {p.image[0], p.image[2], p.image[3], p.image[1], p.result[2], p.result[3], p.result[1], g.before[0], g.before[1]};
  if (kind == kImage) {
    *shape = {p.result[0], p.result[2],    p.result[3],    p.result[1], p.image[2], p.image[3],
              p.image[1],  2 - g.before[0], 2 - g.before[1]};
  }
  return kind == kKernel ? winograd::ServesKernel(*shape) : winograd::Serves(*shape);
}

// Bytes of a kernel that is packed for products of tiles: followed by the kernel as it was given, for the case that
// the result is not finite.
size_t PackedByTiles(const winograd::Shape& shape) {
  return winograd::KernelBytes(shape) + static_cast<size_t>(9 * shape.in * shape.out) * sizeof(float);
}

// A convolution or a gradient of it by products of tiles; whether the result is finite.
template <typename Arg>
bool RunByTiles(int64_t kind, const winograd::Shape& shape, bool packed, int64_t after, Arg arg,
                const ffi::AnyBuffer& result) {
  auto floats = [&](size_t i) { return static_cast<const float*>(arg(i).untyped_data()); };
  float* out = static_cast<float*>(result.untyped_data());
  if (kind == kKernel) return winograd::KernelGradient(floats(0), floats(1), shape, out);
  const float* prepared = floats(1);
  if (packed) {
    if (arg(1).size_bytes() != PackedByTiles(shape)) throw std::invalid_argument("a kernel packed otherwise");
  } else {
    float* made = static_cast<float*>(Scratch(4, winograd::KernelBytes(shape)));
    winograd::PrepareKernel(prepared, shape, kind == kImage, made);
    prepared = made;
  }
  winograd::After then;
  size_t next = 2;
  if (after & kBias) then.bias = floats(next++);
  if (after & kGain) {
    then.gain = floats(next++);
    then.shift = floats(next++);
  }
  if (after & kSum) then.image = floats(next++);
  then.relu = (after & kRelu) != 0;
  return winograd::Convolve(floats(0), prepared, shape, then, out);
}

ffi::Error Convolution(ffi::RemainingArgs args, ffi::RemainingRets rets, int64_t kind,
                       ffi::Span<const int64_t> geometry, ffi::Span<const int64_t> weight) {
  return Guarded([&] {
    const Geometry g = Read(geometry);
    auto arg = [&](size_t i) { return args.get<ffi::AnyBuffer>(i).value(); };
    const ffi::AnyBuffer out = *rets.get<ffi::AnyBuffer>(0).value();
    const ffi::AnyBuffer first = arg(0), second = arg(1);
    // forward: image, kernel -> result; image: result, kernel -> image; kernel: result, image -> kernel
    const ffi::AnyBuffer image = kind == kForward ? first : kind == kImage ? out : second;
    const ffi::AnyBuffer kernel = kind == kKernel ? out : second;
    const ffi::AnyBuffer result = kind == kForward ? out : first;
    const int64_t after = kind == kForward ? g.after_all : 0;
    if (!g.last && (after & (kGain | kSum))) throw std::invalid_argument("only for channels-last images");
    const bool packed = weight.size() > 0;  // the kernel is in oneDNN's layout already
    const Problem problem{ChannelsSecond(DimsOf(image), g.last),
                          packed ? Dims(weight.begin(), weight.end()) : DimsOf(kernel),
                          ChannelsSecond(DimsOf(result), g.last), TypeOf(image.element_type()),
                          TypeOf(packed ? image.element_type() : kernel.element_type())};
    winograd::Shape shape;
    const bool by_tiles = ByTiles(kind, problem, g, &shape);
    if (by_tiles && RunByTiles(kind, shape, packed, after, arg, out)) return;
    const Made& made = Found(kind, problem, geometry);
    std::unordered_map<int, Memory> given;
    if (kind == kForward) {
      given[DNNL_ARG_SRC] = Arranged(made.given_image, image.untyped_data(), made.image, 0);
      const bool ready = packed && !by_tiles;
      if (ready && kernel.size_bytes() != made.kernel.get_size()) throw std::invalid_argument("a kernel packed otherwise");
      char* weights = static_cast<char*>(kernel.untyped_data()) + (packed && by_tiles ? winograd::KernelBytes(shape) : 0);
      given[DNNL_ARG_WEIGHTS] =
          ready ? Memory(made.kernel, Engine(), weights) : Arranged(made.given_kernel, weights, made.kernel, 1);
      size_t next = 2;
      int operand = 0;
      auto give = [&](const Memory::desc& desc) {
        given[DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand++) | DNNL_ARG_SRC_1] =
            Memory(desc, Engine(), arg(next++).untyped_data());
      };
      if (after & kBias) given[DNNL_ARG_BIAS] = Memory(made.bias, Engine(), arg(next++).untyped_data());
      if (after & kGain) {
        give(made.channel);
        give(made.channel);
      }
      if (after & kSum) give(made.given_result);
      Memory to = Place(made.given_result, out.untyped_data(), made.result, 2);
      given[DNNL_ARG_DST] = to;
      made.primitive.execute(Stream(), given);
      Deliver(to, made.given_result, out.untyped_data());
      Stream().wait();
      if (after & kRelu) Relu(out);
    } else if (kind == kImage) {
      given[DNNL_ARG_DIFF_DST] = Arranged(made.given_result, result.untyped_data(), made.result, 0);
      given[DNNL_ARG_WEIGHTS] = Arranged(made.given_kernel, kernel.untyped_data(), made.kernel, 1);
      Memory to = Place(made.given_image, out.untyped_data(), made.image, 2);
      given[DNNL_ARG_DIFF_SRC] = to;
      made.primitive.execute(Stream(), given);
      Deliver(to, made.given_image, out.untyped_data());
    } else {
      given[DNNL_ARG_DIFF_DST] = Arranged(made.given_result, result.untyped_data(), made.result, 0);
      given[DNNL_ARG_SRC] = Arranged(made.given_image, image.untyped_data(), made.image, 1);
      Memory to = Place(made.given_kernel, out.untyped_data(), made.kernel, 2);
      given[DNNL_ARG_DIFF_WEIGHTS] = to;
      made.primitive.execute(Stream(), given);
      Deliver(to, made.given_kernel, out.untyped_data());
    }
    Stream().wait();
  });
}

// A kernel in the layout that the convolution of a problem wants.
ffi::Error Pack(ffi::AnyBuffer kernel, ffi::Result<ffi::AnyBuffer> packed, ffi::Span<const int64_t> geometry,
                ffi::Span<const int64_t> image, ffi::Span<const int64_t> result) {
  return Guarded([&] {
    const Geometry g = Read(geometry);
    const Problem problem{ChannelsSecond(Dims(image.begin(), image.end()), g.last), DimsOf(kernel),
                          ChannelsSecond(Dims(result.begin(), result.end()), g.last), TypeOf(kernel.element_type()),
                          TypeOf(kernel.element_type())};
    winograd::Shape shape;
    if (ByTiles(kForward, problem, g, &shape)) {
      if (packed->size_bytes() != PackedByTiles(shape)) throw std::invalid_argument("a place of another size");
      float* to = static_cast<float*>(packed->untyped_data());
      winograd::PrepareKernel(static_cast<const float*>(kernel.untyped_data()), shape, false, to);
      std::memcpy(to + winograd::KernelBytes(shape) / sizeof(float), kernel.untyped_data(), kernel.size_bytes());
      return;
    }
    const Made& made = Found(kForward, problem, geometry);
    if (packed->size_bytes() != made.kernel.get_size()) throw std::invalid_argument("a place of another size");
    Memory from(made.given_kernel, Engine(), kernel.untyped_data()), to(made.kernel, Engine(), packed->untyped_data());
    dnnl::reorder(from, to).execute(Stream(), from, to);
    Stream().wait();
  });
}

}  // namespace
}  // namespace mycelia

// Bytes of a packed kernel; 0 if it would stay as it is. `dims`: image, kernel and result, each of `rank` numbers.
extern "C" int64_t mycelia_convolution_packed_size(const int64_t* geometry, int64_t length, const int64_t* dims,
                                                   int64_t rank, int32_t bfloat16) {
  using namespace mycelia;
  std::lock_guard<std::mutex> lock(Running());
  try {
    const ffi::Span<const int64_t> values(geometry, static_cast<size_t>(length));
    const Geometry g = Read(values);
    const auto type = bfloat16 ? Memory::data_type::bf16 : Memory::data_type::f32;
    const Problem problem{ChannelsSecond(Dims(dims, dims + rank), g.last), Dims(dims + rank, dims + 2 * rank),
                          ChannelsSecond(Dims(dims + 2 * rank, dims + 3 * rank), g.last), type, type};
    winograd::Shape shape;
    if (ByTiles(kForward, problem, g, &shape)) return static_cast<int64_t>(PackedByTiles(shape));
    const Made& made = Found(kForward, problem, values);
    return made.kernel == made.given_kernel ? 0 : static_cast<int64_t>(made.kernel.get_size());
  } catch (const std::exception&) {
    return 0;
  }
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_convolution_pack, mycelia::Pack,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<xla::ffi::Span<const int64_t>>("geometry")
                                  .Attr<xla::ffi::Span<const int64_t>>("image")
                                  .Attr<xla::ffi::Span<const int64_t>>("result"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_convolution, mycelia::Convolution,
                              xla::ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<int64_t>("kind")
                                  .Attr<xla::ffi::Span<const int64_t>>("geometry")
                                  .Attr<xla::ffi::Span<const int64_t>>("weight"));
