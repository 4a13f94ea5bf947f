// Rows of a table at given places, and the gradient: rows added up at places.
//
// A place below zero counts from the end; one that is outside even then gives a row of zeros, and takes no part in
// the gradient. Rows of the gradient are added in the order of the places, so results do not depend on the number
// of threads: threads own columns of the result, or rows of it if there are few columns.
#include <omp.h>

#include <algorithm>

#include "functions.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kAlone = 16384;   // at most this many elements are not worth a second thread
constexpr int64_t kWide = 64;       // columns that are worth a thread

MYCELIA_CLONES void Add(const float* x, float* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

MYCELIA_CLONES void AddHalf(const BFloat16* x, float* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += ToFloat(x[i]);
}

const int64_t* Places(const ffi::AnyBuffer& places) {
  if (places.element_type() != ffi::DataType::S64) throw std::invalid_argument("places are int64");
  return static_cast<const int64_t*>(places.untyped_data());
}

ffi::Error Take(ffi::AnyBuffer table, ffi::AnyBuffer places, ffi::Result<ffi::AnyBuffer> out) {
  return Guarded([&] {
    const int64_t* at = Places(places);
    const int64_t count = places.element_count(), rows = table.dimensions()[0];
    const size_t bytes = out->size_bytes() / count;
    if (out->size_bytes() != bytes * count || table.size_bytes() != bytes * rows) {
      throw std::invalid_argument("rows of another size");
    }
    const char* from = static_cast<const char*>(table.untyped_data());
    char* to = static_cast<char*>(out->untyped_data());
#pragma omp parallel for schedule(static) if (out->element_count() > static_cast<size_t>(kAlone))
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = at[i] < 0 ? at[i] + rows : at[i];
      if (row >= 0 && row < rows) {
        std::memcpy(to + i * bytes, from + row * bytes, bytes);
      } else {
        std::memset(to + i * bytes, 0, bytes);
      }
    }
  });
}

ffi::Error AddAt(ffi::AnyBuffer updates, ffi::AnyBuffer places, ffi::Result<ffi::AnyBuffer> out) {
  return Guarded([&] {
    const int64_t* at = Places(places);
    const int64_t count = places.element_count(), rows = out->dimensions()[0];
    const int64_t length = out->element_count() / rows;
    if (static_cast<int64_t>(updates.element_count()) != count * length || !Served(updates.element_type()) ||
        out->element_type() != ffi::DataType::F32) {
      throw std::invalid_argument("rows of another size or dtype");
    }
    const bool half = updates.element_type() == ffi::DataType::BF16;
    const char* from = static_cast<const char*>(updates.untyped_data());
    float* sums = static_cast<float*>(out->untyped_data());
    // what is added to columns [begin, end) of rows [first, last)
    auto part = [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = at[i] < 0 ? at[i] + rows : at[i];
        if (row < first || row >= last) continue;
        float* sum = sums + row * length + begin;
        if (half) {
          AddHalf(reinterpret_cast<const BFloat16*>(from) + i * length + begin, sum, end - begin);
        } else {
          Add(reinterpret_cast<const float*>(from) + i * length + begin, sum, end - begin);
        }
      }
    };
    const int64_t work = count * length + static_cast<int64_t>(out->element_count());
    const int64_t threads = work > kAlone ? omp_get_max_threads() : 1;
    const bool columns = length / threads >= kWide;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
      for (int64_t t = 0; t < threads; ++t) {
        const int64_t first = t * rows / threads, last = (t + 1) * rows / threads;
        std::memset(sums + first * length, 0, (last - first) * length * sizeof(float));
        if (!columns) part(first, last, 0, length);
      }
#pragma omp for schedule(static)
      for (int64_t t = 0; t < (columns ? threads : 0); ++t) {
        const int64_t unit = (length + 15) / 16;
        part(0, rows, t * unit / threads * 16, std::min(length, (t + 1) * unit / threads * 16));
      }
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_take, mycelia::Take,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_add_at, mycelia::AddAt,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>());
