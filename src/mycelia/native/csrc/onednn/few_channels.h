// What the kernels for convolutions with few channels share (`few_channels.cc` and `few_channels_gradient.cc`).
//
// oneDNN works on blocks of 16 channels, so it is slow where there are one and six. Here a vector holds the channels of
// one place of the result, and a block of places is worked on at a time, so that what is read of the kernel serves all
// of them. Images are channels-last: of a window, the elements of one row lie side by side, whatever their number.
// An image is worked on in bands of rows, whose parts fit into the first cache; all arithmetic is float32.
#pragma once

#include <algorithm>
#include <vector>

#include "../vectorized.h"
#include "onednn.h"
#include "wide.h"

namespace mycelia {
namespace few {

enum Flags { kBias = 1, kRelu = 2, kKeep = 4, kPool = 8, kFirst = 16, kImage = 32, kKernel = 64 };

constexpr int64_t kMostIn = 8, kMostOut = 32, kMostKernel = 7;
constexpr int64_t kBandBytes = 24 << 10;  // of what a band keeps for the result

template <int kLanes>
struct Vector {
  typedef float Type __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
};

// The larger one of two, or the first NaN. Choices are loops over numbers: of comparisons of whole vectors compilers
// make single ones where they do not know yet for which processor.
template <int kLanes>
MYCELIA_INLINE void Largest(float* best, const float* v) {
#pragma omp simd
  for (int k = 0; k < kLanes; ++k) best[k] = best[k] != best[k] || best[k] > v[k] ? best[k] : v[k];
}

struct Plan {
  int64_t images, in, out, height, width, made_height, made_width, kernel_height, kernel_width;
  int64_t stride[2], before[2], window[2];  // `window`: of the pooling that follows, 1 without it
  int64_t flags;
  int64_t pooled_height, pooled_width;
  int64_t row;           // elements of a window that lie side by side
  int64_t step;          // elements from one window to the next
  int64_t reach_height, reach_width;  // of what windows reach over, padding included
  bool inside;           // no window leaves the image
  bool wide;
  int64_t lanes, blocks;  // channels of the result in a vector, vectors for all of them
  int64_t bands, band;   // bands of an image, rows of the result in one (a multiple of `window`)

  int64_t TapsOfBlock() const { return kernel_height * row; }
  int64_t Pitch(bool copied) const { return (copied ? reach_width : width) * in; }
};

inline Plan MakePlan(ffi::Span<const int64_t> geometry, const Dims& image, const Dims& kernel, const Dims& made) {
  if (geometry.size() != 7 || image.size() != 4 || kernel.size() != 4 || made.size() != 4) {
    throw std::invalid_argument("malformed geometry");
  }
  Plan p;
  p.images = image[0], p.height = image[1], p.width = image[2], p.in = image[3];
  p.made_height = made[1], p.made_width = made[2], p.out = made[3];
  p.kernel_height = kernel[2], p.kernel_width = kernel[3];
  for (int axis = 0; axis < 2; ++axis) {
    p.stride[axis] = geometry[2 * axis], p.before[axis] = geometry[2 * axis + 1], p.window[axis] = geometry[5 + axis];
  }
  p.flags = geometry[4];
  if (p.in > kMostIn || p.out > kMostOut || std::max(p.kernel_height, p.kernel_width) > kMostKernel) {
    throw std::invalid_argument("too many channels or places");
  }
  p.pooled_height = p.made_height / p.window[0], p.pooled_width = p.made_width / p.window[1];
  p.row = p.kernel_width * p.in, p.step = p.stride[1] * p.in;
  p.reach_height = (p.made_height - 1) * p.stride[0] + p.kernel_height;
  p.reach_width = (p.made_width - 1) * p.stride[1] + p.kernel_width;
  p.inside = p.before[0] == 0 && p.before[1] == 0 && p.reach_height <= p.height && p.reach_width <= p.width;
  p.wide = Wide();
  p.lanes = p.wide && p.out > 8 ? 16 : 8;
  p.blocks = (p.out + p.lanes - 1) / p.lanes;
  const int64_t row_bytes = p.window[0] * p.made_width * p.lanes * sizeof(float);
  const int64_t groups = (p.made_height + p.window[0] - 1) / p.window[0];
  const int64_t most = std::clamp<int64_t>(kBandBytes / row_bytes, 1, groups);  // groups of rows in a band
  p.bands = (groups + most - 1) / most;
  p.band = (groups + p.bands - 1) / p.bands * p.window[0];
  p.bands = (p.made_height + p.band - 1) / p.band;
  return p;
}

// Copies rows of an image (padding included) that are reached from the rows of the result from `top` on.
template <typename T>
MYCELIA_INLINE void Spread(const Plan& p, const T* image, int64_t top, int64_t count, float* padded) {
  const int64_t pitch = p.reach_width * p.in, first = top * p.stride[0] - p.before[0];
  const int64_t rows = (count - 1) * p.stride[0] + p.kernel_height;
  const int64_t left = p.before[1] * p.in;
  const int64_t size = std::clamp<int64_t>(pitch - left, 0, p.width * p.in);
  for (int64_t i = 0; i < rows; ++i, padded += pitch) {
    const int64_t y = first + i;
    if (y < 0 || y >= p.height || size == 0) {
      for (int64_t k = 0; k < pitch; ++k) padded[k] = 0.f;
      continue;
    }
    const T* from = image + y * p.width * p.in;
    for (int64_t k = 0; k < left; ++k) padded[k] = 0.f;
    for (int64_t k = 0; k < size; ++k) padded[left + k] = ToFloat(from[k]);
    for (int64_t k = left + size; k < pitch; ++k) padded[k] = 0.f;
  }
}

// Reads a vector of channels at `from`, of which `some` are wanted; nothing from `end` on is read.
template <int kLanes, typename T>
MYCELIA_INLINE void Get(float* to, const T* from, const T* end, int64_t some) {
  T held[kLanes];
  if (from + kLanes <= end) {
    std::memcpy(held, from, sizeof held);
  } else {
    std::memset(held, 0, sizeof held);
    for (int64_t k = 0; k < some; ++k) held[k] = from[k];
  }
  for (int k = 0; k < kLanes; ++k) to[k] = ToFloat(held[k]);
}

// Where a vector of channels can be read: at `from` itself if that is possible, else it is put into `held`.
template <int kLanes>
MYCELIA_INLINE const float* Held(const float* from, const float* end, int64_t some, float* held) {
  if (from + kLanes <= end) return from;
  Get<kLanes>(held, from, end, some);
  return held;
}
template <int kLanes>
MYCELIA_INLINE const float* Held(const BFloat16* from, const BFloat16* end, int64_t some, float* held) {
  Get<kLanes>(held, from, end, some);
  return held;
}

// Writes `places` vectors of channels, `apart` elements from one to the next. Those behind `some` are written too where
// that stays before `end`; whatever follows is written later.
template <int kLanes>
MYCELIA_INLINE void PutAll(float* to, const float* end, int64_t apart, const float* from, int64_t places, int64_t some) {
  for (; places > 0; --places, to += apart, from += kLanes) {
    if (to + kLanes <= end) {
      std::memcpy(to, from, kLanes * sizeof(float));
    } else {
      for (int64_t k = 0; k < some; ++k) to[k] = from[k];
    }
  }
}
template <int kLanes>
MYCELIA_INLINE void PutAll(BFloat16* to, const BFloat16* end, int64_t apart, const float* from,
                           int64_t places, int64_t some) {
  BFloat16 held[16 * kLanes];
  for (int64_t first = 0; first < places; first += 16, from += 16 * kLanes) {
    const int64_t count = std::min<int64_t>(16, places - first);
#pragma omp simd
    for (int64_t k = 0; k < count * kLanes; ++k) Store(&held[k], from[k]);
    for (int64_t q = 0; q < count; ++q, to += apart) {
      if (to + kLanes <= end) {
        std::memcpy(to, held + q * kLanes, kLanes * sizeof(BFloat16));
      } else {
        for (int64_t k = 0; k < some; ++k) to[k] = held[q * kLanes + k];
      }
    }
  }
}

// Channels of the result in a block.
MYCELIA_INLINE int64_t ChannelsOf(const Plan& p, int64_t block) {
  return std::min(p.lanes, p.out - block * p.lanes);
}

}  // namespace few
}  // namespace mycelia
