// The gradient of the kernel of a convolution with few channels on both sides, the first one of a small network.
//
// oneDNN works on blocks of 16 channels, so it is slow where there are one and six. Here each place of a window has a
// vector of sums, one for each channel of the result: a place of the image times the channels of the cotangent is added
// to it, in float32 over one image and in float64 over images. Channels-last float32 images, kernels (out, in, height,
// width). Attribute `geometry`: for each axis stride and padding before.
#include <omp.h>

#include "../vectorized.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kMostPlaces = 128, kMostOut = 16;

struct Shape {
  int64_t images, in, out, height, width, made_height, made_width, kernel_height, kernel_width;
  int64_t stride[2], before[2];
  int64_t places;                       // elements of a window
  int64_t padded_height, padded_width;  // of what windows reach over
};

constexpr int kTogether = 5;  // taps at a time, so that their sums do not wait for each other

// Adds what a row of the result contributes to some taps that lie side by side.
template <int kOut, int kTaps>
MYCELIA_INLINE void Taps(const Shape& s, const float* line, const float* row, float* sums) {
  typedef float Lanes __attribute__((vector_size(kOut * sizeof(float)), aligned(4)));
  Lanes total[kTaps] = {};
  const int64_t step = s.stride[1] * s.in;
  for (int64_t left = 0; left < s.made_width; ++left, line += step) {
    const Lanes ct = *reinterpret_cast<const Lanes*>(row + left * kOut);
    for (int k = 0; k < kTaps; ++k) total[k] += ct * line[k];
  }
  for (int k = 0; k < kTaps; ++k) *reinterpret_cast<Lanes*>(sums + k * kOut) += total[k];
}

// Adds what one image contributes: sums[place * kOut + channel of the result].
template <int kOut>
MYCELIA_INLINE void Contribute(const Shape& s, const float* ct, const float* image, float* padded, float* row,
                               float* sums) {
  const int64_t step = s.padded_width * s.in, taps = s.kernel_width * s.in;
  const int64_t reached = std::min(s.width, s.padded_width - s.before[1]);
  std::memset(padded, 0, s.padded_height * step * sizeof(float));
  for (int64_t y = 0; y < s.height && y + s.before[0] < s.padded_height && reached > 0; ++y) {
    std::memcpy(padded + (y + s.before[0]) * step + s.before[1] * s.in, image + y * s.width * s.in,
                reached * s.in * sizeof(float));
  }
  for (int64_t top = 0; top < s.made_height; ++top) {
    for (int64_t left = 0; left < s.made_width; ++left) {
      for (int64_t o = 0; o < s.out; ++o) row[left * kOut + o] = ct[(top * s.made_width + left) * s.out + o];
    }
    for (int64_t i = 0; i < s.kernel_height; ++i) {
      const float* line = padded + (top * s.stride[0] + i) * step;
      float* sum = sums + i * taps * kOut;
      int64_t k = 0;
      for (; k + kTogether <= taps; k += kTogether) Taps<kOut, kTogether>(s, line + k, row, sum + k * kOut);
      for (; k < taps; ++k) Taps<kOut, 1>(s, line + k, row, sum + k * kOut);
    }
  }
}

MYCELIA_CLONES void Contribute8(const Shape& s, const float* ct, const float* image, float* padded, float* row,
                                float* sums) {
  Contribute<8>(s, ct, image, padded, row, sums);
}
MYCELIA_CLONES void Contribute16(const Shape& s, const float* ct, const float* image, float* padded, float* row,
                                 float* sums) {
  Contribute<16>(s, ct, image, padded, row, sums);
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
    if (s.places > kMostPlaces || s.out > kMostOut) throw std::invalid_argument("too many channels");
    for (int axis = 0; axis < 2; ++axis) s.stride[axis] = geometry[2 * axis], s.before[axis] = geometry[2 * axis + 1];
    s.padded_height = (s.made_height - 1) * s.stride[0] + s.kernel_height;
    s.padded_width = (s.made_width - 1) * s.stride[1] + s.kernel_width;
    const int64_t lanes = s.out <= 8 ? 8 : 16;
    std::vector<double> total(s.places * lanes, 0.0);
#pragma omp parallel
    {
      std::vector<float> sums(s.places * lanes), row(s.made_width * lanes, 0.f);
      std::vector<float> padded(s.padded_height * s.padded_width * s.in);
      std::vector<double> mine(s.places * lanes, 0.0);
#pragma omp for schedule(static)
      for (int64_t n = 0; n < s.images; ++n) {
        std::fill(sums.begin(), sums.end(), 0.f);
        const float* from = ct.typed_data() + n * s.made_height * s.made_width * s.out;
        const float* image_n = image.typed_data() + n * s.height * s.width * s.in;
        if (lanes == 8) {
          Contribute8(s, from, image_n, padded.data(), row.data(), sums.data());
        } else {
          Contribute16(s, from, image_n, padded.data(), row.data(), sums.data());
        }
        for (size_t k = 0; k < sums.size(); ++k) mine[k] += sums[k];
      }
#pragma omp critical
      for (size_t k = 0; k < mine.size(); ++k) total[k] += mine[k];
    }
    float* to = gradient->typed_data();
    const int64_t area = s.kernel_height * s.kernel_width;
    for (int64_t o = 0; o < s.out; ++o) {
      for (int64_t c = 0; c < s.in; ++c) {
        for (int64_t k = 0; k < area; ++k) to[(o * s.in + c) * area + k] = total[(k * s.in + c) * lanes + o];
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
