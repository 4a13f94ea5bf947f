// Maximum over windows of channels-last images with two spatial axes, and its gradient.
//
// The gradient goes to the first largest element of a window, or to its first NaN. A thread has whole images, or where
// there are fewer of them than threads, bands of channels, so nothing is written by two. Attribute `geometry`: for each
// of the two axes window, stride, padding before, dilation.
#include <limits>

#include <omp.h>

#include "../vectorized.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kBand = 64;  // channels that are worked on at a time

struct Shape {
  int64_t images, channels;
  int64_t size[2], made[2], window[2], stride[2], before[2], dilation[2];
};

// Calls `visit(offset of the element in the image)` for the elements of a window that lie in the image, in order.
template <typename Visit>
MYCELIA_INLINE void Window(const Shape& s, int64_t top, int64_t left, Visit visit) {
  for (int64_t i = 0; i < s.window[0]; ++i) {
    const int64_t y = top * s.stride[0] - s.before[0] + i * s.dilation[0];
    if (y < 0 || y >= s.size[0]) continue;
    for (int64_t j = 0; j < s.window[1]; ++j) {
      const int64_t x = left * s.stride[1] - s.before[1] + j * s.dilation[1];
      if (x < 0 || x >= s.size[1]) continue;
      visit((y * s.size[1] + x) * s.channels);
    }
  }
}

template <typename T>
MYCELIA_INLINE void Largest(const Shape& s, const T* image, T* result, int64_t channels) {
  float best[kBand];
  for (int64_t top = 0; top < s.made[0]; ++top) {
    for (int64_t left = 0; left < s.made[1]; ++left) {
      for (int64_t c = 0; c < channels; ++c) best[c] = -std::numeric_limits<float>::infinity();
      Window(s, top, left, [&](int64_t at) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          const float v = ToFloat(image[at + c]);
          best[c] = best[c] != best[c] || best[c] > v ? best[c] : v;
        }
      });
      T* to = result + (top * s.made[1] + left) * s.channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) Store(&to[c], best[c]);
    }
  }
}

template <typename T>
MYCELIA_INLINE void Spread(const Shape& s, const T* ct, const T* image, const T* result, T* gradient,
                           int64_t channels) {
  for (int64_t place = 0; place < s.size[0] * s.size[1]; ++place) {
    std::memset(gradient + place * s.channels, 0, channels * sizeof(T));
  }
  float left_over[kBand];
  for (int64_t top = 0; top < s.made[0]; ++top) {
    for (int64_t left = 0; left < s.made[1]; ++left) {
      const int64_t from = (top * s.made[1] + left) * s.channels;
      for (int64_t c = 0; c < channels; ++c) left_over[c] = 1.f;
      Window(s, top, left, [&](int64_t at) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          const float v = ToFloat(image[at + c]);
          const bool here = left_over[c] != 0.f && (v != v || v == ToFloat(result[from + c]));
          Store(&gradient[at + c], ToFloat(gradient[at + c]) + (here ? ToFloat(ct[from + c]) : 0.f));
          left_over[c] = here ? 0.f : left_over[c];
        }
      });
    }
  }
}

MYCELIA_CLONES void LargestBand(const Shape& s, const float* image, float* result, int64_t channels) {
  Largest(s, image, result, channels);
}
MYCELIA_CLONES void LargestBand(const Shape& s, const BFloat16* image, BFloat16* result, int64_t channels) {
  Largest(s, image, result, channels);
}
MYCELIA_CLONES void SpreadBand(const Shape& s, const float* ct, const float* image, const float* result,
                               float* gradient, int64_t channels) {
  Spread(s, ct, image, result, gradient, channels);
}

using Extents = ffi::Span<const int64_t>;

Shape Read(ffi::Span<const int64_t> geometry, Extents in, Extents out) {
  if (geometry.size() != 8 || in.size() != 4 || out.size() != 4) throw std::invalid_argument("malformed geometry");
  Shape s;
  s.images = in[0];
  s.channels = in[3];
  for (int axis = 0; axis < 2; ++axis) {
    s.size[axis] = in[1 + axis];
    s.made[axis] = out[1 + axis];
    const int64_t* at = geometry.begin() + 4 * axis;
    s.window[axis] = at[0];
    s.stride[axis] = at[1];
    s.before[axis] = at[2];
    s.dilation[axis] = at[3];
  }
  return s;
}

// `part(image, first channel, channels)` for all of them, in parallel.
template <typename Part>
void ForBands(const Shape& s, Part part) {
  const int64_t bands = (s.channels + kBand - 1) / kBand;
#pragma omp parallel for schedule(dynamic)
  for (int64_t k = 0; k < s.images * bands; ++k) {
    const int64_t first = k % bands * kBand;
    part(k / bands, first, std::min(kBand, s.channels - first));
  }
}

template <typename T>
void Forward(const ffi::AnyBuffer& image, ffi::AnyBuffer result, const Shape& s) {
  const T* x = static_cast<const T*>(image.untyped_data());
  T* y = static_cast<T*>(result.untyped_data());
  const int64_t in = s.size[0] * s.size[1] * s.channels, out = s.made[0] * s.made[1] * s.channels;
  ForBands(s, [&](int64_t n, int64_t first, int64_t channels) {
    LargestBand(s, x + n * in + first, y + n * out + first, channels);
  });
}

ffi::Error MaxPool(ffi::AnyBuffer image, ffi::Result<ffi::AnyBuffer> result, ffi::Span<const int64_t> geometry) {
  return Guarded([&] {
    const Shape s = Read(geometry, image.dimensions(), result->dimensions());
    if (image.element_type() == ffi::DataType::F32) {
      Forward<float>(image, *result, s);
    } else {
      Forward<BFloat16>(image, *result, s);
    }
  });
}

ffi::Error MaxPoolGrad(ffi::Buffer<ffi::DataType::F32> ct, ffi::Buffer<ffi::DataType::F32> image,
                       ffi::Buffer<ffi::DataType::F32> result, ffi::Result<ffi::Buffer<ffi::DataType::F32>> gradient,
                       ffi::Span<const int64_t> geometry) {
  return Guarded([&] {
    const Shape s = Read(geometry, image.dimensions(), result.dimensions());
    const int64_t in = s.size[0] * s.size[1] * s.channels, out = s.made[0] * s.made[1] * s.channels;
    ForBands(s, [&](int64_t n, int64_t first, int64_t channels) {
      SpreadBand(s, ct.typed_data() + n * out + first, image.typed_data() + n * in + first,
                 result.typed_data() + n * out + first, gradient->typed_data() + n * in + first, channels);
    });
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_max_pool, mycelia::MaxPool,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<xla::ffi::Span<const int64_t>>("geometry"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_max_pool_grad, mycelia::MaxPoolGrad,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Attr<xla::ffi::Span<const int64_t>>("geometry"));
