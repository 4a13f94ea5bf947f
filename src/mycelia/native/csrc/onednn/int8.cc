// Products of matrices of 8-bit integers, summed in 32 bits, by oneDNN.
//
// Arguments: a (batch, M, K) of int8 or uint8, b (batch, K, N) of int8, either transposed; a batch of one is used for
// all. Result: int32. Attribute `shape`: batch of a, batch of b, M, N, K, whether a is transposed, whether b is. Sums
// are exact where the processor has instructions for such products (VNNI), and wrap like int32.
#include "onednn.h"

namespace mycelia {
namespace {

using Memory = dnnl::memory;

struct Int8Product {
  dnnl::matmul primitive;
  Memory::desc a, b, result;
  Memory::desc given_b;
};

Int8Product MakeInt8(ffi::Span<const int64_t> s, Memory::data_type type) {
  const int64_t batch_a = s[0], batch_b = s[1], m = s[2], n = s[3], k = s[4];
  const bool flat = std::max(batch_a, batch_b) == 1;
  auto matrix = [&](int64_t batch, int64_t rows, int64_t columns, bool transposed, Memory::data_type kind) {
    const int64_t row = transposed ? 1 : columns, column = transposed ? rows : 1;
    if (flat) return Memory::desc({rows, columns}, kind, Dims{row, column});
    return Memory::desc({batch, rows, columns}, kind, Dims{rows * columns, row, column});
  };
  Int8Product made;
  made.a = matrix(batch_a, m, k, s[5] != 0, type);
  made.given_b = matrix(batch_b, k, n, s[6] != 0, Memory::data_type::s8);
  made.result = matrix(std::max(batch_a, batch_b), m, n, false, Memory::data_type::s32);
  // a layout of oneDNN's choice: without one it takes a slower way
  const Memory::desc any(made.given_b.get_dims(), Memory::data_type::s8, Memory::format_tag::any);
  const dnnl::matmul::primitive_desc desc(Engine(), made.a, any, made.result);
  made.b = desc.weights_desc();
  made.primitive = dnnl::matmul(desc);
  return made;
}

ffi::Error Int8Matmul(ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> out,
                      ffi::Span<const int64_t> shape) {
  return Guarded([&] {
    if (shape.size() != 7) throw std::invalid_argument("malformed shape");
    const int64_t* s = shape.begin();
    if (static_cast<int64_t>(a.element_count()) != s[0] * s[2] * s[4] ||
        static_cast<int64_t>(b.element_count()) != s[1] * s[3] * s[4] ||
        static_cast<int64_t>(out->element_count()) != std::max(s[0], s[1]) * s[2] * s[3]) {
      throw std::invalid_argument("shapes do not fit");
    }
    Key key("int8");
    key.AddAll(shape);
    key.Add(static_cast<int64_t>(a.element_type()));
    const Int8Product& made = Cached<Int8Product>(key, [&] { return MakeInt8(shape, TypeOf(a.element_type())); });
    const Memory weights = Arranged(made.given_b, b.untyped_data(), made.b, 3);
    made.primitive.execute(Stream(), {{DNNL_ARG_SRC, Memory(made.a, Engine(), a.untyped_data())},
                                      {DNNL_ARG_WEIGHTS, weights},
                                      {DNNL_ARG_DST, Memory(made.result, Engine(), out->untyped_data())}});
    Stream().wait();
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_int8_matmul, mycelia::Int8Matmul,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<xla::ffi::Span<const int64_t>>("shape"));
