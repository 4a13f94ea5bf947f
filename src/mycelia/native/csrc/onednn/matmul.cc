// Matrix products by oneDNN, one or a batch of them, with a bias and a relu.
//
// Arguments: a (batch, M, K), b (batch, K, N), either transposed, [bias (N) in float32]; a batch of one is used for all.
// Attribute `shape`: batch of a, batch of b, M, N, K, whether a is transposed, whether b is, whether a relu follows, and
// whether b is packed: in the layout that oneDNN chooses for it.
#include "onednn.h"
#include "relu.h"

namespace mycelia {
namespace {

using Memory = dnnl::memory;

struct Made {
  dnnl::primitive primitive;
  Memory::desc a, b, bias, result;
  Memory::desc given_b;  // b as it is if it is not packed
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
  made.given_b = matrix(batch_b, k, n, s[6] != 0, type, flat);
  made.b = s[8] == 0 ? made.given_b : Memory::desc(made.given_b.get_dims(), type, Memory::format_tag::any);
  made.result = matrix(batch, m, n, false, to, flat);
  made.bias = !bias  ? Memory::desc()
              : flat ? Memory::desc({1, n}, Memory::data_type::f32, Dims{n, 1})
                     : Memory::desc({1, 1, n}, Memory::data_type::f32, Dims{n, n, 1});
  const auto desc = bias ? dnnl::matmul::primitive_desc(Engine(), made.a, made.b, made.bias, made.result)
                         : dnnl::matmul::primitive_desc(Engine(), made.a, made.b, made.result);
  made.b = desc.weights_desc();
  made.primitive = dnnl::matmul(desc);
  return made;
}

const Made& Found(ffi::Span<const int64_t> shape, Memory::data_type type, Memory::data_type to, bool bias) {
  if (shape.size() != 9) throw std::invalid_argument("malformed shape");
  Key key("matmul");
  key.AddAll(shape);
  key.Add(static_cast<int64_t>(type) * 64 + static_cast<int64_t>(to));
  key.Add(bias);
  return Cached<Made>(key, [&] { return Make(shape, type, to, bias); });
}

ffi::Error Matmul(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> shape) {
  return Guarded([&] {
    auto arg = [&](size_t i) { return args.get<ffi::AnyBuffer>(i).value(); };
    const ffi::AnyBuffer a = arg(0), b = arg(1), out = *rets.get<ffi::AnyBuffer>(0).value();
    if (shape.size() != 9) throw std::invalid_argument("malformed shape");
    const int64_t* s = shape.begin();
    const int64_t batch = std::max(s[0], s[1]);
    if (static_cast<int64_t>(a.element_count()) != s[0] * s[2] * s[4] ||
        (s[8] == 0 && static_cast<int64_t>(b.element_count()) != s[1] * s[3] * s[4]) ||
        static_cast<int64_t>(out.element_count()) != batch * s[2] * s[3]) {
      throw std::invalid_argument("shapes do not fit");
    }
    const bool bias = args.size() > 2;
    const Made& made = Found(shape, TypeOf(a.element_type()), TypeOf(out.element_type()), bias);
    std::unordered_map<int, Memory> given;
    if (b.size_bytes() < made.b.get_size()) throw std::invalid_argument("a matrix packed otherwise");
    given[DNNL_ARG_SRC] = Memory(made.a, Engine(), a.untyped_data());
    given[DNNL_ARG_WEIGHTS] = Memory(made.b, Engine(), b.untyped_data());
    if (bias) given[DNNL_ARG_BIAS] = Memory(made.bias, Engine(), arg(2).untyped_data());
    given[DNNL_ARG_DST] = Memory(made.result, Engine(), out.untyped_data());
    made.primitive.execute(Stream(), given);
    Stream().wait();
    if (s[7] != 0) Relu(out);
  });
}

// b in the layout that the product wants.
ffi::Error Pack(ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> packed, ffi::Span<const int64_t> shape, bool bias) {
  return Guarded([&] {
    const Made& made = Found(shape, TypeOf(b.element_type()), TypeOf(b.element_type()), bias);
    if (packed->size_bytes() != made.b.get_size()) throw std::invalid_argument("a place of another size");
    Memory from(made.given_b, Engine(), b.untyped_data()), to(made.b, Engine(), packed->untyped_data());
    dnnl::reorder(from, to).execute(Stream(), from, to);
    Stream().wait();
  });
}

}  // namespace
}  // namespace mycelia

// Bytes of b packed for a product; 0 if it would stay as it is.
extern "C" int64_t mycelia_matmul_packed_size(const int64_t* shape, int64_t length, int32_t bias, int32_t bfloat16) {
  using namespace mycelia;
  std::lock_guard<std::mutex> lock(Running());
  try {
    const auto type = bfloat16 ? Memory::data_type::bf16 : Memory::data_type::f32;
    const Made& made = Found(ffi::Span<const int64_t>(shape, static_cast<size_t>(length)), type, type, bias != 0);
    return made.b == made.given_b ? 0 : static_cast<int64_t>(made.b.get_size());
  } catch (const std::exception&) {
    return 0;
  }
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_matmul_pack, mycelia::Pack,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<xla::ffi::Span<const int64_t>>("shape")
                                  .Attr<bool>("bias"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_matmul, mycelia::Matmul,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>("shape"));
