// The gradients of convolutions of few channels: of kernel, bias and image, in one pass over the cotangent.
//
// What pooling and relu do to the cotangent is done where it is read: of a window of the pooling the first largest
// place gets it, or the first NaN. The kernel's gradient is summed in float32 over a band of one image, and in float64
// over bands and images. The image's gradient is made place by place of the result: what a place contributes to a row
// of its window lies side by side.
//
// Arguments: cotangent; the convolution's result (behind the relu) if there is relu or pooling; the image for the
// kernel's gradient; the kernel for the image's. Results as asked for: gradient of the kernel and of the bias, both
// float32, and of the image. Attribute `geometry`: for each axis stride and padding before; flags; the window of the
// pooling; height and width of the kernel.
#include "few_channels.h"

#include <omp.h>

namespace mycelia {
namespace few {
namespace {

template <typename T>
struct Call {
  const T *ct, *result, *image;
  const float* kernel;  // by blocks, rows and channels of the result; each a row of the window, filled up with zeros
  T* gradient;          // of the image
};

// What a thread works in.
struct Space {
  std::vector<float> padded, ct, image, sums;
  std::vector<double> total, bias;
};

// The place of a window that has the largest value (or the first NaN) takes the cotangent away. If relu stands before
// the pooling, a place that is not above zero does not get it.
MYCELIA_INLINE float Taken(float v, float most, bool relu, float& ct) {
  const bool here = (v == most) | (v != v);
  const float mine = here ? ct : 0.f;
  ct = here ? 0.f : ct;
  return relu & (v <= 0.f) ? 0.f : mine;
}

// The cotangent of a window of two by two places with values a to d.
template <int kLanes>
MYCELIA_INLINE void TwoByTwo(const float* a, const float* b, const float* c, const float* d, float* ct, bool relu,
                             float* up, float* down) {
  float most[kLanes];
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) {
    float best = a[l];
    best = best != best || best > b[l] ? best : b[l];
    best = best != best || best > c[l] ? best : c[l];
    most[l] = best != best || best > d[l] ? best : d[l];
  }
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) up[l] = Taken(a[l], most[l], relu, ct[l]);
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) up[kLanes + l] = Taken(b[l], most[l], relu, ct[l]);
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) down[l] = Taken(c[l], most[l], relu, ct[l]);
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) down[kLanes + l] = Taken(d[l], most[l], relu, ct[l]);
}

// The cotangent of the convolution for rows from `top` on, a vector of channels for each place.
template <int kLanes, typename T>
MYCELIA_INLINE void Cotangent(const Plan& p, const Call<T>& c, int64_t n, int64_t top, int64_t last, int64_t block,
                              float* to) {
  const int64_t some = ChannelsOf(p, block), shift = block * kLanes;
  const int64_t places = p.made_height * p.made_width;
  const T* all = c.result ? c.result + p.images * places * p.out : nullptr;
  const T* result = c.result ? c.result + n * places * p.out + shift : nullptr;
  const bool relu = p.flags & kRelu;
  if (!(p.flags & kPool)) {
    const T* end = c.ct + p.images * places * p.out;
    const T* ct = c.ct + n * places * p.out + shift;
    for (int64_t k = top * p.made_width; k < last * p.made_width; ++k, to += kLanes) {
      Get<kLanes>(to, ct + k * p.out, end, some);
      if (!relu) continue;
      float y[kLanes];
      Get<kLanes>(y, result + k * p.out, all, some);
#pragma omp simd
      for (int l = 0; l < kLanes; ++l) to[l] = y[l] <= 0.f ? 0.f : to[l];
    }
    return;
  }
  const int64_t high = p.window[0], broad = p.window[1], pooled = p.pooled_height * p.pooled_width;
  const T* end = c.ct + p.images * pooled * p.out;
  const int64_t over = std::min(last, p.pooled_height * high), aside = p.pooled_width * broad;
  for (int64_t y = top; y < last; ++y) {  // what no window has
    for (int64_t x = y < over ? aside : 0; x < p.made_width; ++x) {
      std::memset(to + ((y - top) * p.made_width + x) * kLanes, 0, kLanes * sizeof(float));
    }
  }
  for (int64_t y = top; y < over; y += high) {
    for (int64_t x = 0; x < p.pooled_width; ++x) {
      float g[kLanes], best[kLanes];
      Get<kLanes>(g, c.ct + (n * pooled + y / high * p.pooled_width + x) * p.out + shift, end, some);
      const int64_t first = y * p.made_width + x * broad;
      float* put = to + (first - top * p.made_width) * kLanes;
      if (high == 2 && broad == 2) {
        const T* from = result + first * p.out;
        const int64_t down = p.made_width * p.out;
        float held[4][kLanes];
        TwoByTwo<kLanes>(Held<kLanes>(from, all, some, held[0]), Held<kLanes>(from + p.out, all, some, held[1]),
                         Held<kLanes>(from + down, all, some, held[2]),
                         Held<kLanes>(from + down + p.out, all, some, held[3]), g, relu, put,
                         put + p.made_width * kLanes);
        continue;
      }
      for (int64_t i = 0; i < high; ++i) {
        for (int64_t j = 0; j < broad; ++j) {
          float* v = put + (i * p.made_width + j) * kLanes;
          Get<kLanes>(v, result + (first + i * p.made_width + j) * p.out, all, some);
          if (i + j == 0) std::memcpy(best, v, sizeof best);
          Largest<kLanes>(best, v);
        }
      }
      for (int64_t i = 0; i < high; ++i) {
        for (int64_t j = 0; j < broad; ++j) {
          float* at = put + (i * p.made_width + j) * kLanes;
#pragma omp simd
          for (int l = 0; l < kLanes; ++l) at[l] = Taken(at[l], best[l], relu, g[l]);
        }
      }
    }
  }
}

// Adds to the sums of kRows x kTaps elements of a window, kernel rows from `i` and elements of a row from `k` on. Rows
// before `row` and elements before `tap` are left alone: they have been seen to.
template <int kLanes, int kRows, int kTaps>
MYCELIA_INLINE void Taps(const Plan& p, const float* x, int64_t pitch, const float* ct, int64_t height, int64_t i,
                         int64_t k, int64_t row, int64_t tap, float* sums) {
  using Lanes = typename Vector<kLanes>::Type;
  Lanes sum[kRows][kTaps] = {};
  const int64_t step = p.step;
  for (int64_t top = 0; top < height; ++top) {
    const float* low = x + (top * p.stride[0] + i) * pitch + k;
    const float* high = low + 3 * pitch;
    for (int64_t left = p.made_width; left > 0; --left, ct += kLanes, low += step, high += step) {
      const Lanes g = *reinterpret_cast<const Lanes*>(ct);
#pragma GCC unroll 8
      for (int a = 0; a < kRows; ++a) {
        const float* at = a < 3 ? low + a * pitch : high + (a - 3) * pitch;
#pragma GCC unroll 16
        for (int b = 0; b < kTaps; ++b) sum[a][b] += g * at[b];
      }
    }
  }
#pragma GCC unroll 8
  for (int a = 0; a < kRows; ++a) {
#pragma GCC unroll 16
    for (int b = 0; b < kTaps; ++b) {
      Lanes& to = *reinterpret_cast<Lanes*>(sums + ((i + a) * p.row + k + b) * kLanes);
      if (i + a >= row && k + b >= tap) to += sum[a][b];
    }
  }
}

// As many elements of a row at a time as there are templates for, with little seen twice.
inline int64_t TapsTogether(int64_t row, bool wide) {
  static const int64_t known[] = {15, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1};
  int64_t best = 1, price = row * 16;
  for (int64_t taps : known) {
    if (taps > row || (!wide && taps > 12)) continue;
    const int64_t seen = (row + taps - 1) / taps * (taps + 1);
    if (seen < price) price = seen, best = taps;
  }
  return best;
}

template <int kLanes>
MYCELIA_INLINE void Window(const Plan& p, const float* x, int64_t pitch, const float* ct, int64_t height, float* sums) {
  const int64_t taps = TapsTogether(p.row, p.wide), most = (p.wide ? 25 : 12) / taps;
  int64_t rows = 1;
  for (int64_t r : {2, 3, 5}) {
    if (r <= most && r <= p.kernel_height && r * taps <= 25) rows = r;
  }
  for (int64_t row = 0; row < p.kernel_height; row += rows) {
    const int64_t i = std::min(row, p.kernel_height - rows);
    for (int64_t tap = 0; tap < p.row; tap += taps) {
      const int64_t k = std::min(tap, p.row - taps);
      switch (rows * 16 + taps) {
#define MYCELIA_CASE(r, t) \
  case r * 16 + t: Taps<kLanes, r, t>(p, x, pitch, ct, height, i, k, row, tap, sums); break;
#define MYCELIA_CASES(t) MYCELIA_CASE(1, t) MYCELIA_CASE(2, t)
        MYCELIA_CASES(1) MYCELIA_CASES(2) MYCELIA_CASES(3) MYCELIA_CASES(4) MYCELIA_CASES(5) MYCELIA_CASES(6)
        MYCELIA_CASES(7) MYCELIA_CASES(8) MYCELIA_CASES(10) MYCELIA_CASES(12) MYCELIA_CASE(1, 15)
        MYCELIA_CASE(3, 1) MYCELIA_CASE(3, 2) MYCELIA_CASE(3, 3) MYCELIA_CASE(3, 4) MYCELIA_CASE(3, 5)
        MYCELIA_CASE(3, 6) MYCELIA_CASE(3, 7) MYCELIA_CASE(3, 8)
        MYCELIA_CASE(5, 1) MYCELIA_CASE(5, 2) MYCELIA_CASE(5, 3) MYCELIA_CASE(5, 4) MYCELIA_CASE(5, 5)
#undef MYCELIA_CASES
#undef MYCELIA_CASE
      }
    }
  }
}

// Adds what `kPlaces` places contribute to one row of their windows, `kParts` vectors long.
template <int kLanes, int kPlaces, int kParts>
MYCELIA_INLINE void Back(const Plan& p, const float* ct, const float* w, int64_t channels, float* to) {
  using Lanes = typename Vector<kLanes>::Type;
  Lanes sum[kPlaces][kParts] = {};
  for (int64_t o = 0; o < channels; ++o, w += kParts * kLanes) {
    Lanes v[kParts];
    for (int b = 0; b < kParts; ++b) v[b] = *reinterpret_cast<const Lanes*>(w + b * kLanes);
#pragma GCC unroll 8
    for (int q = 0; q < kPlaces; ++q) {
      const float g = ct[q * kLanes + o];
#pragma GCC unroll 8
      for (int b = 0; b < kParts; ++b) sum[q][b] += v[b] * g;
    }
  }
  // beyond the row the sums are zero, if the cotangent is finite; what is not must not reach other places
  typedef int32_t Bits __attribute__((vector_size(kLanes * sizeof(int32_t)), aligned(4), may_alias));
  int32_t seen[kLanes];
  for (int k = 0; k < kLanes; ++k) seen[k] = (kParts - 1) * kLanes + k < p.row ? -1 : 0;
  const Bits mask = *reinterpret_cast<const Bits*>(seen);
#pragma GCC unroll 8
  for (int q = 0; q < kPlaces; ++q) {
    sum[q][kParts - 1] = (Lanes)((Bits)sum[q][kParts - 1] & mask);
#pragma GCC unroll 8
    for (int b = 0; b < kParts; ++b) *reinterpret_cast<Lanes*>(to + q * p.step + b * kLanes) += sum[q][b];
  }
}

template <int kLanes, int kParts, int kMost>
MYCELIA_INLINE void BackRow(const Plan& p, const float* ct, const float* w, int64_t channels, float* to) {
  const int64_t parts = (p.made_width + kMost - 1) / kMost, together = (p.made_width + parts - 1) / parts;
  for (int64_t left = 0; left < p.made_width; left += together) {
    const float* from = ct + left * kLanes;
    float* at = to + left * p.step;
    switch (std::min(together, p.made_width - left)) {
#define MYCELIA_CASE(n) \
  case n: Back<kLanes, (n <= kMost ? n : 1), kParts>(p, from, w, channels, at); break;
      MYCELIA_CASE(1) MYCELIA_CASE(2) MYCELIA_CASE(3) MYCELIA_CASE(4) MYCELIA_CASE(5) MYCELIA_CASE(6) MYCELIA_CASE(7)
      MYCELIA_CASE(8)
#undef MYCELIA_CASE
    }
  }
}

// Adds what rows of the cotangent contribute to the (padded) image, whose row `top` reaches first is at `to`.
template <int kLanes>
MYCELIA_INLINE void Image(const Plan& p, const float* ct, int64_t height, const float* w, int64_t channels, float* to) {
  const int64_t pitch = p.reach_width * p.in, parts = (p.row + kLanes - 1) / kLanes;
  const int64_t size = channels * parts * kLanes;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t i = 0; i < p.kernel_height; ++i) {
      const float *from = ct + y * p.made_width * kLanes, *kernel = w + i * size;
      float* row = to + (y * p.stride[0] + i) * pitch;
      switch (parts) {
        case 1: BackRow<kLanes, 1, 8>(p, from, kernel, channels, row); break;
        case 2: BackRow<kLanes, 2, 6>(p, from, kernel, channels, row); break;
        case 3: BackRow<kLanes, 3, 4>(p, from, kernel, channels, row); break;
        case 4: BackRow<kLanes, 4, 3>(p, from, kernel, channels, row); break;
        case 5: BackRow<kLanes, 5, 2>(p, from, kernel, channels, row); break;
        case 6: BackRow<kLanes, 6, 2>(p, from, kernel, channels, row); break;
        case 7: BackRow<kLanes, 7, 1>(p, from, kernel, channels, row); break;
      }
    }
  }
}

template <int kLanes>
MYCELIA_INLINE void Bias(const float* ct, int64_t places, double* total) {
  using Lanes = typename Vector<kLanes>::Type;
  Lanes sum = {};
  for (int64_t k = 0; k < places; ++k) sum += *reinterpret_cast<const Lanes*>(ct + k * kLanes);
  for (int k = 0; k < kLanes; ++k) total[k] += sum[k];
}

// The image without its padding; where no window reaches it is zero.
template <typename T>
MYCELIA_INLINE void Crop(const Plan& p, const float* image, T* to) {
  const int64_t wide = p.reach_width * p.in, line = p.width * p.in, left = p.before[1] * p.in;
  const int64_t size = std::clamp<int64_t>(wide - left, 0, line);
  for (int64_t y = 0; y < p.height; ++y, to += line) {
    const float* from = image + (y + p.before[0]) * wide + left;
    const int64_t given = y + p.before[0] < p.reach_height ? size : 0;
    for (int64_t k = 0; k < given; ++k) Store(&to[k], from[k]);
    for (int64_t k = given; k < line; ++k) Store(&to[k], 0.f);
  }
}

// For several kinds of processors ------------------------------------------------------------------------------

MYCELIA_CLONES void Cotangent8(const Plan& p, const Call<float>& c, int64_t n, int64_t top, int64_t last,
                               int64_t block, float* to) {
  Cotangent<8>(p, c, n, top, last, block, to);
}
MYCELIA_CLONES void Cotangent8(const Plan& p, const Call<BFloat16>& c, int64_t n, int64_t top, int64_t last,
                               int64_t block, float* to) {
  Cotangent<8>(p, c, n, top, last, block, to);
}
MYCELIA_WIDE void Cotangent16(const Plan& p, const Call<float>& c, int64_t n, int64_t top, int64_t last,
                              int64_t block, float* to) {
  Cotangent<16>(p, c, n, top, last, block, to);
}
MYCELIA_WIDE void Cotangent16(const Plan& p, const Call<BFloat16>& c, int64_t n, int64_t top, int64_t last,
                              int64_t block, float* to) {
  Cotangent<16>(p, c, n, top, last, block, to);
}
MYCELIA_CLONES void Window8(const Plan& p, const float* x, int64_t pitch, const float* ct, int64_t height,
                            float* sums) {
  Window<8>(p, x, pitch, ct, height, sums);
}
MYCELIA_WIDE void Window16(const Plan& p, const float* x, int64_t pitch, const float* ct, int64_t height,
                           float* sums) {
  Window<16>(p, x, pitch, ct, height, sums);
}
MYCELIA_CLONES void Image8(const Plan& p, const float* ct, int64_t height, const float* w, int64_t channels,
                           float* to) {
  Image<8>(p, ct, height, w, channels, to);
}
MYCELIA_WIDE void Image16(const Plan& p, const float* ct, int64_t height, const float* w, int64_t channels,
                          float* to) {
  Image<16>(p, ct, height, w, channels, to);
}
MYCELIA_CLONES void Bias8(const float* ct, int64_t places, double* total) { Bias<8>(ct, places, total); }
MYCELIA_WIDE void Bias16(const float* ct, int64_t places, double* total) { Bias<16>(ct, places, total); }
MYCELIA_CLONES void Padded(const Plan& p, const float* image, int64_t top, int64_t count, float* to) {
  Spread(p, image, top, count, to);
}
MYCELIA_CLONES void Padded(const Plan& p, const BFloat16* image, int64_t top, int64_t count, float* to) {
  Spread(p, image, top, count, to);
}
MYCELIA_CLONES void Cropped(const Plan& p, const float* image, float* to) { Crop(p, image, to); }
MYCELIA_CLONES void Cropped(const Plan& p, const float* image, BFloat16* to) { Crop(p, image, to); }
MYCELIA_CLONES void Move(float* sums, int64_t count, double* total) {  // to the total; the sums are zero again
  for (int64_t k = 0; k < count; ++k) {
    total[k] += sums[k];
    sums[k] = 0.f;
  }
}

// All gradients from one image.
template <typename T>
void One(const Plan& p, const Call<T>& c, int64_t n, Space& space) {
  const bool wide = p.lanes == 16;
  const bool copied = !p.inside || sizeof(T) != sizeof(float);
  const int64_t pitch = p.Pitch(copied), taps = p.TapsOfBlock() * p.lanes;
  const int64_t parts = (p.row + p.lanes - 1) / p.lanes;
  const T* image = c.image ? c.image + n * p.height * p.width * p.in : nullptr;
  float* ct = space.ct.data();
  std::fill(space.image.begin(), space.image.end(), 0.f);
  for (int64_t top = 0; top < p.made_height; top += p.band) {
    const int64_t last = std::min(top + p.band, p.made_height), height = last - top;
    const float* x = space.padded.data();
    if ((p.flags & kKernel) && copied) {
      Padded(p, image, top, height, space.padded.data());
    } else if (p.flags & kKernel) {
      x = reinterpret_cast<const float*>(image) + top * p.stride[0] * pitch;
    }
    for (int64_t block = 0; block < p.blocks; ++block) {
      const int64_t first = block * p.lanes;
      if (wide) {
        Cotangent16(p, c, n, top, last, block, ct);
      } else {
        Cotangent8(p, c, n, top, last, block, ct);
      }
      if (p.flags & kKernel) {
        (wide ? Window16 : Window8)(p, x, pitch, ct, height, space.sums.data());
        Move(space.sums.data(), taps, space.total.data() + block * taps);
      }
      if (p.flags & kBias) (wide ? Bias16 : Bias8)(ct, height * p.made_width, space.bias.data() + first);
      if (p.flags & kImage) {
        (wide ? Image16 : Image8)(p, ct, height, c.kernel + first * p.kernel_height * parts * p.lanes,
                                  ChannelsOf(p, block),
                                  space.image.data() + top * p.stride[0] * p.reach_width * p.in);
      }
    }
  }
  if (p.flags & kImage) Cropped(p, space.image.data(), c.gradient + n * p.height * p.width * p.in);
}

template <typename T>
std::vector<float> Packed(const Plan& p, const T* kernel) {
  const int64_t length = (p.row + p.lanes - 1) / p.lanes * p.lanes;
  std::vector<float> packed(p.blocks * p.kernel_height * p.lanes * length, 0.f);
  float* to = packed.data();
  for (int64_t block = 0; block < p.blocks; ++block, to += p.kernel_height * p.lanes * length) {
    const int64_t channels = ChannelsOf(p, block);
    for (int64_t i = 0; i < p.kernel_height; ++i) {
      for (int64_t o = 0; o < channels; ++o) {
        float* row = to + (i * channels + o) * length;
        for (int64_t j = 0; j < p.kernel_width; ++j) {
          for (int64_t c = 0; c < p.in; ++c) {
            const int64_t at = ((block * p.lanes + o) * p.in + c) * p.kernel_height + i;
            row[j * p.in + c] = ToFloat(kernel[at * p.kernel_width + j]);
          }
        }
      }
    }
  }
  return packed;
}

template <typename T>
void Run(const Plan& p, const ffi::AnyBuffer& ct, const void* result, const void* image, const void* kernel,
         float* kernel_gradient, float* bias_gradient, void* image_gradient) {
  std::vector<float> packed;
  if (kernel) packed = Packed(p, static_cast<const T*>(kernel));
  const Call<T> call{static_cast<const T*>(ct.untyped_data()), static_cast<const T*>(result),
                     static_cast<const T*>(image), packed.data(), static_cast<T*>(image_gradient)};
  const int64_t taps = p.TapsOfBlock() * p.lanes;
  std::vector<Space> spaces(omp_get_max_threads());
#pragma omp parallel if (p.images > 1)
  {
    Space& space = spaces[omp_get_thread_num()];
    space.padded.resize(((p.band - 1) * p.stride[0] + p.kernel_height) * p.reach_width * p.in);
    space.ct.resize(p.band * p.made_width * p.lanes);
    if (p.flags & kImage) {
      const int64_t rows = std::max(p.reach_height, p.before[0] + p.height);
      space.image.resize(rows * p.reach_width * p.in + 8 * p.lanes);
    }
    space.sums.assign(taps, 0.f);
    space.total.assign(p.blocks * taps, 0.0);
    space.bias.assign(p.blocks * p.lanes, 0.0);
#pragma omp for schedule(static)
    for (int64_t n = 0; n < p.images; ++n) One(p, call, n, space);
  }
  std::vector<double> total(p.blocks * taps, 0.0), bias(p.blocks * p.lanes, 0.0);
  for (const Space& space : spaces) {  // in a fixed order; a thread that did not run has nothing
    for (size_t k = 0; k < space.total.size(); ++k) total[k] += space.total[k];
    for (size_t k = 0; k < space.bias.size(); ++k) bias[k] += space.bias[k];
  }
  const int64_t area = p.kernel_height * p.kernel_width;
  for (int64_t o = 0; o < p.out; ++o) {
    const int64_t lane = o % p.lanes;
    if (bias_gradient) bias_gradient[o] = static_cast<float>(bias[o]);
    if (!kernel_gradient) continue;
    const double* from = total.data() + o / p.lanes * taps + lane;
    for (int64_t c = 0; c < p.in; ++c) {
      for (int64_t k = 0; k < area; ++k) {
        kernel_gradient[(o * p.in + c) * area + k] = static_cast<float>(from[(k * p.in + c) * p.lanes]);
      }
    }
  }
}

ffi::Error Gradient(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> geometry) {
  return Guarded([&] {
    if (geometry.size() != 9) throw std::invalid_argument("malformed geometry");
    const int64_t flags = geometry[4];
    size_t given = 0, asked = 0;
    auto next = [&]() -> ffi::AnyBuffer { return args.get<ffi::AnyBuffer>(given++).value(); };
    auto place = [&]() -> ffi::AnyBuffer { return *rets.get<ffi::AnyBuffer>(asked++).value(); };
    const ffi::AnyBuffer ct = next();
    const ffi::AnyBuffer result = flags & (kRelu | kPool) ? next() : ct;
    const ffi::AnyBuffer image = flags & kKernel ? next() : ct;
    const ffi::AnyBuffer kernel = flags & kImage ? next() : ct;
    float* kernel_gradient = flags & kKernel ? static_cast<float*>(place().untyped_data()) : nullptr;
    float* bias_gradient = flags & kBias ? static_cast<float*>(place().untyped_data()) : nullptr;
    Dims in = flags & kKernel ? DimsOf(image) : Dims();
    void* image_gradient = nullptr;
    if (flags & kImage) {
      const ffi::AnyBuffer to = place();
      image_gradient = to.untyped_data();
      in = DimsOf(to);
    }
    const Dims made = DimsOf(result);
    if (in.size() != 4 || made.size() != 4) throw std::invalid_argument("images of two axes");
    const Plan p = MakePlan(ffi::Span<const int64_t>(geometry.begin(), 7), in,
                            Dims{made[3], in[3], geometry[7], geometry[8]}, made);
    const void* y = flags & (kRelu | kPool) ? result.untyped_data() : nullptr;
    const void* x = flags & kKernel ? image.untyped_data() : nullptr;
    const void* w = flags & kImage ? kernel.untyped_data() : nullptr;
    if (ct.element_type() == ffi::DataType::F32) {
      Run<float>(p, ct, y, x, w, kernel_gradient, bias_gradient, image_gradient);
    } else {
      Run<BFloat16>(p, ct, y, x, w, kernel_gradient, bias_gradient, image_gradient);
    }
  });
}

}  // namespace
}  // namespace few
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_few_channels_gradient, mycelia::few::Gradient,
                              xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>(
                                  "geometry"));
