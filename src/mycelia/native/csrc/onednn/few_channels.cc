// The gradient of the kernel of a convolution with few channels on both sides, the first one of a small network.
//
// oneDNN works on blocks of 16 channels, so it is slow where there are one and six. Here the places of a window are what
// is worked on at a time: dw[o, place] is the sum of ct[o] times the window, in float32 over one image and in float64
// over images. Channels-last float32 images, kernels (out, in, height, width). Attribute `geometry`: strides, padding
// before.
#include <omp.h>

#include "../vectorized.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kMostPlaces = 128, kMostOut = 16;

struct Shape {
  int64_t images, in, out, height, width, made_height, made_width, kernel_height, kernel_width;
  int64_t stride[2], before[2];
  int64_t places, padded;  // elements of a window, and that as whole vectors
};

// Adds what one image contributes: sums[o * padded + place].
MYCELIA_CLONES void OneImage(const Shape& s, const float* ct, const float* image, float* sums) {
  alignas(64) float window[kMostPlaces] = {};
  const int64_t row = s.kernel_width * s.in;
  for (int64_t top = 0; top < s.made_height; ++top) {
    for (int64_t left = 0; left < s.made_width; ++left, ct += s.out) {
      const int64_t x = left * s.stride[1] - s.before[1];
      const int64_t first = std::max<int64_t>(0, -x), last = std::min(s.kernel_width, s.width - x);
      const bool inside = first == 0 && last == s.kernel_width;
      for (int64_t i = 0; i < s.kernel_height; ++i) {
        const int64_t y = top * s.stride[0] - s.before[0] + i;
        float* to = window + i * row;
        if (y < 0 || y >= s.height || last <= first) {
          for (int64_t k = 0; k < row; ++k) to[k] = 0.f;
          continue;
        }
        const float* from = image + (y * s.width + x) * s.in;
        if (inside) {
          for (int64_t k = 0; k < row; ++k) to[k] = from[k];
        } else {
          for (int64_t k = 0; k < row; ++k) to[k] = k >= first * s.in && k < last * s.in ? from[k] : 0.f;
        }
      }
      for (int64_t o = 0; o < s.out; ++o) {
        const float g = ct[o];
        float* sum = sums + o * s.padded;
#pragma omp simd aligned(sum : 64)
        for (int64_t k = 0; k < s.padded; ++k) sum[k] += g * window[k];
      }
    }
  }
}

using F32 = ffi::Buffer<ffi::DataType::F32>;

ffi::Error WeightGradient(F32 ct, F32 image, ffi::Result<F32> gradient, ffi::Span<const int64_t> geometry) {
  return Guarded([&] {
    auto made = ct.dimensions(), in = image.dimensions(), kernel = gradient->dimensions();
    if (geometry.size() != 4 || made.size() != 4 || in.size() != 4 || kernel.size() != 4) {
      throw std::invalid_argument("malformed geometry");
    }
    Shape s;
    s.images = in[0], s.height = in[1], s.width = in[2], s.in = in[3];
    s.made_height = made[1], s.made_width = made[2], s.out = made[3];
    s.kernel_height = kernel[2], s.kernel_width = kernel[3];
    s.places = s.kernel_height * s.kernel_width * s.in;
    s.padded = (s.places + 15) / 16 * 16;
    if (s.padded > kMostPlaces || s.out > kMostOut) throw std::invalid_argument("too many channels");
    for (int axis = 0; axis < 2; ++axis) s.stride[axis] = geometry[2 * axis], s.before[axis] = geometry[2 * axis + 1];
    std::vector<double> total(s.out * s.padded, 0.0);
#pragma omp parallel
    {
      alignas(64) float sums[kMostOut * kMostPlaces];
      std::vector<double> mine(s.out * s.padded, 0.0);
#pragma omp for schedule(static)
      for (int64_t n = 0; n < s.images; ++n) {
        std::fill(sums, sums + s.out * s.padded, 0.f);
        OneImage(s, ct.typed_data() + n * s.made_height * s.made_width * s.out,
                 image.typed_data() + n * s.height * s.width * s.in, sums);
        for (int64_t k = 0; k < s.out * s.padded; ++k) mine[k] += sums[k];
      }
#pragma omp critical
      for (int64_t k = 0; k < s.out * s.padded; ++k) total[k] += mine[k];
    }
    float* to = gradient->typed_data();
    const int64_t area = s.kernel_height * s.kernel_width;
    for (int64_t o = 0; o < s.out; ++o) {
      for (int64_t c = 0; c < s.in; ++c) {
        for (int64_t k = 0; k < area; ++k) to[(o * s.in + c) * area + k] = total[o * s.padded + k * s.in + c];
      }
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_few_channels, mycelia::WeightGradient,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::DataType::F32>>()
                                  .Attr<xla::ffi::Span<const int64_t>>("geometry"));
