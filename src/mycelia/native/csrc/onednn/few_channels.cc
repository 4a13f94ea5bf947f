// Convolutions of few channels, with bias, relu and max pooling by windows that do not overlap behind them.
//
// Arguments: image (channels last), kernel (out, in, height, width), bias if asked for. Results: the convolution if it
// is to be kept, what pooling makes of it if that is asked for (with its channels second, if so wanted). Attribute
// `geometry`: for each axis stride and padding before; flags; the window of the pooling; height and width of the result.
#include "few_channels.h"

#include <omp.h>

namespace mycelia {
namespace few {
namespace {

constexpr int kMostTogether = 14;  // places at a time: as many sums as the latency of their additions asks for

// Sums of `kPlaces` places that lie side by side: to[place * kLanes + channel].
template <int kLanes, int kPlaces>
MYCELIA_INLINE void Places(const Plan& p, const float* x, int64_t pitch, const float* w, const float* bias, float* to) {
  using Lanes = typename Vector<kLanes>::Type;
  constexpr int kBases = (kPlaces + 2) / 3;  // three places are reached from one address
  Lanes sum[kPlaces];
  for (int q = 0; q < kPlaces; ++q) sum[q] = *reinterpret_cast<const Lanes*>(bias);
  const int64_t step = p.step, row = p.row;
  for (int64_t i = 0; i < p.kernel_height; ++i) {
    const float* at[kBases];
    for (int b = 0; b < kBases; ++b) at[b] = x + i * pitch + 3 * b * step;
    for (int64_t k = 0; k < row; ++k, w += kLanes) {
      const Lanes v = *reinterpret_cast<const Lanes*>(w);
#pragma GCC unroll 16
      for (int q = 0; q < kPlaces; ++q) sum[q] += v * at[q / 3][q % 3 * step];
#pragma GCC unroll 16
      for (int b = 0; b < kBases; ++b) ++at[b];
    }
  }
  if (p.flags & kRelu) {
    const Lanes zero = {};
    for (int q = 0; q < kPlaces; ++q) sum[q] = sum[q] < zero ? zero : sum[q];
  }
  for (int q = 0; q < kPlaces; ++q) *reinterpret_cast<Lanes*>(to + q * kLanes) = sum[q];
}

// A row of the result, `kPlaces` at a time; the last ones may be computed twice.
template <int kLanes, int kPlaces>
MYCELIA_INLINE void RowOf(const Plan& p, const float* x, int64_t pitch, const float* w, const float* bias, float* to) {
  for (int64_t left = 0; left < p.made_width; left += kPlaces) {
    const int64_t at = std::min(left, p.made_width - kPlaces);
    Places<kLanes, kPlaces>(p, x + at * p.step, pitch, w, bias, to + at * kLanes);
  }
}

template <int kLanes>
MYCELIA_INLINE void AnyRow(const Plan& p, int together, const float* x, int64_t pitch, const float* w,
                           const float* bias, float* to) {
  switch (together) {
#define MYCELIA_CASE(n) \
  case n: RowOf<kLanes, n>(p, x, pitch, w, bias, to); break;
    MYCELIA_CASE(1) MYCELIA_CASE(2) MYCELIA_CASE(3) MYCELIA_CASE(4) MYCELIA_CASE(5) MYCELIA_CASE(6) MYCELIA_CASE(7)
    MYCELIA_CASE(8) MYCELIA_CASE(9) MYCELIA_CASE(10) MYCELIA_CASE(11) MYCELIA_CASE(12) MYCELIA_CASE(13)
    MYCELIA_CASE(14)
#undef MYCELIA_CASE
  }
}

MYCELIA_CLONES void Row8(const Plan& p, int together, const float* x, int64_t pitch, const float* w, const float* bias,
                         float* to) {
  AnyRow<8>(p, together, x, pitch, w, bias, to);
}
MYCELIA_WIDE void Row16(const Plan& p, int together, const float* x, int64_t pitch, const float* w, const float* bias,
                        float* to) {
  AnyRow<16>(p, together, x, pitch, w, bias, to);
}

// What a call reads and writes; images of all of the batch.
template <typename T>
struct Call {
  const T* image;
  const float *kernel, *bias;  // by blocks, each channels last
  T *result, *pooled;          // null if not asked for
  int together;
};

// The rows of the result of one image from `top` on, with what follows.
template <int kLanes, typename T>
MYCELIA_INLINE void Band(const Plan& p, const Call<T>& c, int64_t n, int64_t top, float* padded, float* rows) {
  const int64_t last = std::min(top + p.band, p.made_height);
  const T* image = c.image + n * p.height * p.width * p.in;
  const bool copied = !p.inside || sizeof(T) != sizeof(float);
  const int64_t pitch = p.Pitch(copied), each = p.made_width * kLanes;
  const float* x = padded;
  if (copied) {
    Spread(p, image, top, last - top, padded);
  } else {
    x = reinterpret_cast<const float*>(image) + top * p.stride[0] * pitch;
  }
  const bool pool = p.flags & kPool;
  const int64_t high = p.window[0], broad = p.window[1];
  const T* end = c.result ? c.result + (n * p.made_height + last) * p.made_width * p.out : nullptr;
  const int64_t pooled_last = std::min(last / high, p.pooled_height);
  const T* pooled_end = pool ? c.pooled + (n * p.pooled_height + pooled_last) * p.pooled_width * p.out : nullptr;
  for (int64_t group = top; group < last; group += high) {
    if (!c.result && group / high >= p.pooled_height) break;
    for (int64_t block = p.blocks; block-- > 0;) {  // the last one first: others write over what it writes too much
      const int64_t some = ChannelsOf(p, block);
      const int64_t count = std::min(high, last - group);
      for (int64_t i = 0; i < count; ++i) {
        float* row = rows + i * each;
        (kLanes == 16 ? Row16 : Row8)(p, c.together, x + (group + i - top) * p.stride[0] * pitch, pitch,
                                      c.kernel + block * p.TapsOfBlock() * kLanes, c.bias + block * kLanes, row);
        if (!c.result) continue;
        T* to = c.result + (n * p.made_height + group + i) * p.made_width * p.out + block * kLanes;
        PutAll<kLanes>(to, end, p.out, row, p.made_width, some);
      }
      if (!pool || group / high >= p.pooled_height) continue;
      const int64_t area = p.pooled_height * p.pooled_width;
      T* to = c.pooled + (n * p.pooled_height + group / high) * p.pooled_width * p.out + block * kLanes;
      for (int64_t left = 0; left < p.pooled_width; ++left) {  // over the places of the first row, which are done with
        const float* from = rows + left * broad * kLanes;
        float best[kLanes];
        std::memcpy(best, from, sizeof best);
        for (int64_t i = 0; i < high; ++i) {
          for (int64_t j = (i == 0); j < broad; ++j) {
            Largest<kLanes>(best, from + i * each + j * kLanes);
          }
        }
        std::memcpy(rows + left * kLanes, best, sizeof best);
      }
      if (p.flags & kFirst) {
        T* line = c.pooled + (n * p.out + block * kLanes) * area + group / high * p.pooled_width;
        for (int64_t o = 0; o < some; ++o) {
          for (int64_t left = 0; left < p.pooled_width; ++left) Store(&line[o * area + left], rows[left * kLanes + o]);
        }
        continue;
      }
      PutAll<kLanes>(to, pooled_end, p.out, rows, p.pooled_width, some);
    }
  }
}

using F = Call<float>;
using B = Call<BFloat16>;

MYCELIA_CLONES void Band8(const Plan& p, const F& c, int64_t n, int64_t top, float* padded, float* rows) {
  Band<8>(p, c, n, top, padded, rows);
}
MYCELIA_CLONES void Band8(const Plan& p, const B& c, int64_t n, int64_t top, float* padded, float* rows) {
  Band<8>(p, c, n, top, padded, rows);
}
MYCELIA_WIDE void Band16(const Plan& p, const F& c, int64_t n, int64_t top, float* padded, float* rows) {
  Band<16>(p, c, n, top, padded, rows);
}
MYCELIA_WIDE void Band16(const Plan& p, const B& c, int64_t n, int64_t top, float* padded, float* rows) {
  Band<16>(p, c, n, top, padded, rows);
}

template <typename T>
std::vector<float> Packed(const Plan& p, const T* kernel) {
  std::vector<float> packed(p.blocks * p.TapsOfBlock() * p.lanes, 0.f);
  const int64_t area = p.kernel_height * p.kernel_width;
  for (int64_t o = 0; o < p.out; ++o) {
    float* to = packed.data() + o / p.lanes * p.TapsOfBlock() * p.lanes + o % p.lanes;
    for (int64_t c = 0; c < p.in; ++c) {
      for (int64_t k = 0; k < area; ++k) to[(k * p.in + c) * p.lanes] = ToFloat(kernel[(o * p.in + c) * area + k]);
    }
  }
  return packed;
}

template <typename T>
void Run(const Plan& p, const ffi::AnyBuffer& image, const ffi::AnyBuffer& kernel, const float* bias, void* result,
         void* pooled) {
  const std::vector<float> packed = Packed(p, static_cast<const T*>(kernel.untyped_data()));
  std::vector<float> biases(p.blocks * p.lanes, 0.f);
  if (bias) std::copy(bias, bias + p.out, biases.begin());
  const int64_t most = p.wide ? kMostTogether : 11;
  const int64_t parts = (p.made_width + most - 1) / most;
  const Call<T> call{static_cast<const T*>(image.untyped_data()), packed.data(), biases.data(),
                     static_cast<T*>(result), static_cast<T*>(pooled),
                     static_cast<int>((p.made_width + parts - 1) / parts)};
  const int64_t work = p.images * p.bands;
#pragma omp parallel if (work > 1)
  {
    std::vector<float> padded(((p.band - 1) * p.stride[0] + p.kernel_height) * p.reach_width * p.in);
    std::vector<float> rows(p.window[0] * p.made_width * p.lanes);
#pragma omp for schedule(static)
    for (int64_t k = 0; k < work; ++k) {
      const int64_t n = k / p.bands, top = k % p.bands * p.band;
      if (p.lanes == 16) {
        Band16(p, call, n, top, padded.data(), rows.data());
      } else {
        Band8(p, call, n, top, padded.data(), rows.data());
      }
    }
  }
}

ffi::Error Convolution(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> geometry) {
  return Guarded([&] {
    auto arg = [&](size_t i) { return args.get<ffi::AnyBuffer>(i).value(); };
    const ffi::AnyBuffer image = arg(0), kernel = arg(1);
    const Dims in = DimsOf(image), shape = DimsOf(kernel);
    if (geometry.size() != 9) throw std::invalid_argument("malformed geometry");
    const Dims made{in[0], geometry[7], geometry[8], shape[0]};
    const Plan p = MakePlan(ffi::Span<const int64_t>(geometry.begin(), 7), in, shape, made);
    size_t next = 0;
    void* result = p.flags & kKeep ? (*rets.get<ffi::AnyBuffer>(next++).value()).untyped_data() : nullptr;
    void* pooled = p.flags & kPool ? (*rets.get<ffi::AnyBuffer>(next++).value()).untyped_data() : nullptr;
    const float* bias = p.flags & kBias ? static_cast<const float*>(arg(2).untyped_data()) : nullptr;
    if (image.element_type() == ffi::DataType::F32) {
      Run<float>(p, image, kernel, bias, result, pooled);
    } else {
      Run<BFloat16>(p, image, kernel, bias, result, pooled);
    }
  });
}

}  // namespace
}  // namespace few
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_few_channels_forward, mycelia::few::Convolution,
                              xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>(
                                  "geometry"));
