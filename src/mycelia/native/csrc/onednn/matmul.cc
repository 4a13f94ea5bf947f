// Matrix products by oneDNN, one or a batch of them, with a bias and a relu.
//
// Arguments: a (batch, M, K), b (batch, K, N), either transposed, [bias (N) in float32]; a batch of one is used for all.
// Attribute `shape`: batch of a, batch of b, M, N, K, whether a is transposed, whether b is, whether a relu follows.
#include "onednn.h"
#include "relu.h"

namespace mycelia {
namespace {

using Memory = dnnl::memory;

struct Made {
  dnnl::primitive primitive;
  Memory::desc a, b, bias, result;
};

Made Make(ffi::Span<const int64_t> s, Memory::data_type type, Memory::data_type to, bool bias) {
  const int64_t batch_a = s[0], batch_b = s[1], m = s[2], n = s[3], k = s[4];
  const int64_t batch = std::max(batch_a, batch_b);
  Made made;
  auto matrix = [](int64_t batch, int64_t rows, int64_t columns, bool transposed, Memory::data_type type, bool flat) {
    const int64_t row = transposed ? 1 : columns, column = transposed ? rows : 1;
    if (flat) return Memory::desc({rows, columns}, type, Dims{row, column});
    return Memory::desc({batch, rows, columns}, type, Dims{rows * columns, row, column});
  };
  const bool flat = batch == 1;
  made.a = matrix(batch_a, m, k, s[5] != 0, type, flat);
  made.b = matrix(batch_b, k, n, s[6] != 0, type, flat);
  made.result = matrix(batch, m, n, false, to, flat);
  made.bias = !bias  ? Memory::desc()
              : flat ? Memory::desc({1, n}, Memory::data_type::f32, Dims{n, 1})
                     : Memory::desc({1, 1, n}, Memory::data_type::f32, Dims{n, n, 1});
  const auto desc = bias ? dnnl::matmul::primitive_desc(Engine(), made.a, made.b, made.bias, made.result)
                         : dnnl::matmul::primitive_desc(Engine(), made.a, made.b, made.result);
  made.primitive = dnnl::matmul(desc);
  return made;
}

ffi::Error Matmul(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> shape) {
  return Guarded([&] {
    auto arg = [&](size_t i) { return args.get<ffi::AnyBuffer>(i).value(); };
    const ffi::AnyBuffer a = arg(0), b = arg(1), out = *rets.get<ffi::AnyBuffer>(0).value();
    if (shape.size() != 8) throw std::invalid_argument("malformed shape");
    const int64_t* s = shape.begin();
    const int64_t batch = std::max(s[0], s[1]);
    if (static_cast<int64_t>(a.element_count()) != s[0] * s[2] * s[4] ||
        static_cast<int64_t>(b.element_count()) != s[1] * s[3] * s[4] ||
        static_cast<int64_t>(out.element_count()) != batch * s[2] * s[3]) {
      throw std::invalid_argument("shapes do not fit");
    }
    const bool bias = args.size() > 2;
    Key key("matmul");
    key.AddAll(shape);
    key.Add(static_cast<int64_t>(a.element_type()) * 64 + static_cast<int64_t>(out.element_type()));
    key.Add(bias);
    const Made& made =
        Cached<Made>(key, [&] { return Make(shape, TypeOf(a.element_type()), TypeOf(out.element_type()), bias); });
    std::unordered_map<int, Memory> given;
    given[DNNL_ARG_SRC] = Memory(made.a, Engine(), a.untyped_data());
    given[DNNL_ARG_WEIGHTS] = Memory(made.b, Engine(), b.untyped_data());
    if (bias) given[DNNL_ARG_BIAS] = Memory(made.bias, Engine(), arg(2).untyped_data());
    given[DNNL_ARG_DST] = Memory(made.result, Engine(), out.untyped_data());
    made.primitive.execute(Stream(), given);
    Stream().wait();
    if (s[7] != 0) Relu(out);
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_matmul, mycelia::Matmul,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>("shape"));
