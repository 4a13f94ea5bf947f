#include "relu.h"

#include <omp.h>

#include "../vectorized.h"

namespace mycelia {
namespace {

constexpr int64_t kAlone = 16384;  // at most this many elements are not worth a second thread

template <typename T>
MYCELIA_INLINE void Clamp(T* data, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float v = ToFloat(data[i]);
    Store(&data[i], v < 0.f ? 0.f : v);
  }
}

MYCELIA_CLONES void ClampAll(float* data, int64_t size) { Clamp(data, size); }
MYCELIA_CLONES void ClampAll(BFloat16* data, int64_t size) { Clamp(data, size); }

template <typename T>
void InParallel(T* data, int64_t size) {
#pragma omp parallel if (size > kAlone)
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t begin = size * me / threads, end = size * (me + 1) / threads;
    ClampAll(data + begin, end - begin);
  }
}

}  // namespace

void Relu(const ffi::AnyBuffer& buffer) {
  const auto size = static_cast<int64_t>(buffer.element_count());
  if (buffer.element_type() == ffi::DataType::F32) {
    InParallel(static_cast<float*>(buffer.untyped_data()), size);
  } else {
    InParallel(static_cast<BFloat16*>(buffer.untyped_data()), size);
  }
}

}  // namespace mycelia
