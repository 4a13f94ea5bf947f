// Batch normalization in training, forward and backward; for channels-last images with what stands around it.
//
// A channels-last image is rows of C channels. Sums over rows are formed around the first row, so that a mean far from zero costs no
// digits: in float32 over some dozen rows and in float64 from there on; each thread has its part of the rows.
//
// forward   x, scale, shift, [residual] -> y, mean, variance
//           y = (x - mean) / sqrt(variance + epsilon) * scale + shift [+ residual] [relu]
// backward  ct, [ct2], [y], x, mean, variance, scale -> dx, dscale, dshift, [g]
//           g = (ct + ct2) where y > 0
#include <cmath>

#include <omp.h>

#include "../vectorized.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kRows = 32;  // rows that are summed in float32

// sums[c] += x - around, squares[c] += (x - around)^2 over a few rows
template <typename T>
MYCELIA_INLINE void MomentsOf(const T* x, int64_t rows, int64_t channels, const float* around, float* sums,
                              float* squares) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * channels) {
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      const float k = around[c], p = ToFloat(x[c]) - k, q = ToFloat(x[c + channels]) - k,
                  s = ToFloat(x[c + 2 * channels]) - k, t = ToFloat(x[c + 3 * channels]) - k;
      sums[c] += (p + q) + (s + t);
      squares[c] += (p * p + q * q) + (s * s + t * t);
    }
  }
  for (; r < rows; ++r, x += channels) {
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      const float d = ToFloat(x[c]) - around[c];
      sums[c] += d;
      squares[c] += d * d;
    }
  }
}

template <typename T, bool kResidual, bool kRelu>
MYCELIA_INLINE void Normalize(const T* x, const T* residual, T* y, int64_t rows, int64_t channels, const float* mean,
                              const float* gain, const float* shift) {
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      float v = (ToFloat(x[c]) - mean[c]) * gain[c] + shift[c];
      if (kResidual) v += ToFloat(residual[r * channels + c]);
      if (kRelu) v = v < 0.f ? 0.f : v;
      Store(&y[c], v);
    }
  }
}

// What is put before the gradient: a second cotangent and the mask of a relu, either of which may be missing.
template <typename T, bool kSecond, bool kMask>
MYCELIA_INLINE float Cotangent(const T* ct, const T* second, const T* y, int64_t i) {
  float g = ToFloat(ct[i]);
  if (kSecond) g += ToFloat(second[i]);
  if (kMask) g = ToFloat(y[i]) <= 0.f ? 0.f : g;
  return g;
}

// sums[c] += g, products[c] += g * (x - mean) over a few rows; g is written if there is a place for it
template <typename T, bool kSecond, bool kMask, bool kKeep>
MYCELIA_INLINE void Correlate(const T* ct, const T* second, const T* y, const T* x, T* kept, int64_t rows,
                              int64_t channels, const float* mean, float* sums, float* products) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * channels;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      float g = Cotangent<T, kSecond, kMask>(ct, second, y, at + c);
      if (kKeep) {
        Store(&kept[at + c], g);
        g = ToFloat(kept[at + c]);
      }
      sums[c] += g;
      products[c] += g * (ToFloat(x[at + c]) - mean[c]);
    }
  }
}

template <typename T, bool kSecond, bool kMask>
MYCELIA_INLINE void Differentiate(const T* ct, const T* second, const T* y, const T* x, T* dx, int64_t rows,
                                  int64_t channels, const float* mean, const float* a, const float* b,
                                  const float* d) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * channels;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      const float g = Cotangent<T, kSecond, kMask>(ct, second, y, at + c);
      Store(&dx[at + c], a[c] * g + b[c] * (ToFloat(x[at + c]) - mean[c]) + d[c]);
    }
  }
}

// The same functions for each type, compiled for each instruction set.
#define MYCELIA_FOR(T)                                                                                               \
  MYCELIA_CLONES void MomentsRows(const T* x, int64_t rows, int64_t channels, const float* around, float* sums,      \
                                  float* squares) {                                                                  \
    MomentsOf<T>(x, rows, channels, around, sums, squares);                                                          \
  }                                                                                                                  \
  MYCELIA_CLONES void NormalizeRows(const T* x, const T* residual, bool relu, T* y, int64_t rows, int64_t channels,  \
                                    const float* mean, const float* gain, const float* shift) {                      \
    if (residual != nullptr && relu) {                                                                               \
      Normalize<T, true, true>(x, residual, y, rows, channels, mean, gain, shift);                                   \
    } else if (residual != nullptr) {                                                                                \
      Normalize<T, true, false>(x, residual, y, rows, channels, mean, gain, shift);                                  \
    } else if (relu) {                                                                                               \
      Normalize<T, false, true>(x, residual, y, rows, channels, mean, gain, shift);                                  \
    } else {                                                                                                         \
      Normalize<T, false, false>(x, residual, y, rows, channels, mean, gain, shift);                                 \
    }                                                                                                                \
  }                                                                                                                  \
  MYCELIA_CLONES void CorrelateRows(const T* ct, const T* second, const T* y, const T* x, T* kept, int64_t rows,     \
                                    int64_t channels, const float* mean, float* sums, float* products) {             \
    if (kept != nullptr) {                                                                                           \
      if (second != nullptr && y != nullptr) {                                                                       \
        Correlate<T, true, true, true>(ct, second, y, x, kept, rows, channels, mean, sums, products);                \
      } else if (second != nullptr) {                                                                                \
        Correlate<T, true, false, true>(ct, second, y, x, kept, rows, channels, mean, sums, products);               \
      } else {                                                                                                       \
        Correlate<T, false, true, true>(ct, second, y, x, kept, rows, channels, mean, sums, products);               \
      }                                                                                                              \
    } else if (y != nullptr) {                                                                                       \
      Correlate<T, false, true, false>(ct, second, y, x, kept, rows, channels, mean, sums, products);                \
    } else {                                                                                                         \
      Correlate<T, false, false, false>(ct, second, y, x, kept, rows, channels, mean, sums, products);               \
    }                                                                                                                \
  }                                                                                                                  \
  MYCELIA_CLONES void DifferentiateRows(const T* ct, const T* y, const T* x, T* dx, int64_t rows, int64_t channels,  \
                                        const float* mean, const float* a, const float* b, const float* d) {         \
    if (y != nullptr) {                                                                                              \
      Differentiate<T, false, true>(ct, nullptr, y, x, dx, rows, channels, mean, a, b, d);                           \
    } else {                                                                                                         \
      Differentiate<T, false, false>(ct, nullptr, y, x, dx, rows, channels, mean, a, b, d);                          \
    }                                                                                                                \
  }
MYCELIA_FOR(float)
MYCELIA_FOR(BFloat16)

// Two sums a channel over all rows; `part(first row, rows, sums, others)` adds those of a few rows.
template <typename Part>
void SumTwo(int64_t rows, int64_t channels, std::vector<double>& first, std::vector<double>& second, Part part) {
  first.assign(channels, 0.0);
  second.assign(channels, 0.0);
  const bool alone = rows * channels < 8192;
#pragma omp parallel if (!alone)
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t blocks = (rows + kRows - 1) / kRows;
    const int64_t begin = blocks * me / threads, end = blocks * (me + 1) / threads;
    std::vector<float> few(2 * channels);
    std::vector<double> mine(2 * channels, 0.0);
    for (int64_t block = begin; block < end; ++block) {
      std::fill(few.begin(), few.end(), 0.f);
      const int64_t at = block * kRows;
      part(at, std::min(kRows, rows - at), few.data(), few.data() + channels);
      for (int64_t c = 0; c < 2 * channels; ++c) mine[c] += few[c];
    }
#pragma omp critical
    for (int64_t c = 0; c < channels; ++c) {
      first[c] += mine[c];
      second[c] += mine[channels + c];
    }
  }
}

// `part(first row, rows)` for all rows, in parallel.
template <typename Part>
void ForRows(int64_t rows, int64_t channels, Part part) {
  const bool alone = rows * channels < 8192;
#pragma omp parallel if (!alone)
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t begin = rows * me / threads, end = rows * (me + 1) / threads;
    part(begin, end - begin);
  }
}

template <typename T>
const T* DataOf(const ffi::AnyBuffer& buffer) {
  return static_cast<const T*>(buffer.untyped_data());
}

template <typename T>
void Forward(ffi::RemainingArgs& args, ffi::RemainingRets& rets, bool relu, float epsilon) {
  auto arg = [&](size_t i) { return args.get<ffi::AnyBuffer>(i).value(); };
  auto ret = [&](size_t i) { return static_cast<void*>((*rets.get<ffi::AnyBuffer>(i).value()).untyped_data()); };
  const ffi::AnyBuffer image = arg(0);
  const int64_t channels = image.dimensions().back(), rows = image.element_count() / channels;
  const T* x = DataOf<T>(image);
  const float *scale = DataOf<float>(arg(1)), *shift = DataOf<float>(arg(2));
  const T* residual = args.size() > 3 ? DataOf<T>(arg(3)) : nullptr;
  T* y = static_cast<T*>(ret(0));
  float *mean = static_cast<float*>(ret(1)), *variance = static_cast<float*>(ret(2));
  std::vector<float> around(channels), gain(channels);
  for (int64_t c = 0; c < channels; ++c) around[c] = ToFloat(x[c]);
  std::vector<double> sums, squares;
  SumTwo(rows, channels, sums, squares, [&](int64_t at, int64_t few, float* first, float* second) {
    MomentsRows(x + at * channels, few, channels, around.data(), first, second);
  });
  for (int64_t c = 0; c < channels; ++c) {
    const double away = sums[c] / rows;
    const double spread = squares[c] / rows - away * away;
    mean[c] = static_cast<float>(around[c] + away);
    variance[c] = static_cast<float>(spread < 0.0 ? 0.0 : spread);
    gain[c] = scale[c] / std::sqrt(variance[c] + epsilon);
  }
  ForRows(rows, channels, [&](int64_t at, int64_t few) {
    NormalizeRows(x + at * channels, residual == nullptr ? nullptr : residual + at * channels, relu, y + at * channels,
                  few, channels, mean, gain.data(), shift);
  });
}

template <typename T>
void Backward(ffi::RemainingArgs& args, ffi::RemainingRets& rets, bool second, bool mask, float epsilon) {
  auto ret = [&](size_t i) { return static_cast<void*>((*rets.get<ffi::AnyBuffer>(i).value()).untyped_data()); };
  size_t next = 0;
  auto arg = [&] { return args.get<ffi::AnyBuffer>(next++).value(); };
  const ffi::AnyBuffer image = arg();
  const int64_t channels = image.dimensions().back(), rows = image.element_count() / channels;
  const T* ct = DataOf<T>(image);
  const T* ct2 = second ? DataOf<T>(arg()) : nullptr;
  const T* y = mask ? DataOf<T>(arg()) : nullptr;
  const T* x = DataOf<T>(arg());
  const float* mean = DataOf<float>(arg());
  const float* variance = DataOf<float>(arg());
  const float* scale = DataOf<float>(arg());
  T* dx = static_cast<T*>(ret(0));
  float *dscale = static_cast<float*>(ret(1)), *dshift = static_cast<float*>(ret(2));
  T* kept = rets.size() > 3 ? static_cast<T*>(ret(3)) : nullptr;
  if (second && kept == nullptr) throw std::invalid_argument("a sum of cotangents has to be kept");
  std::vector<double> sums, products;
  auto from = [&](const T* data, int64_t at) { return data == nullptr ? nullptr : data + at * channels; };
  SumTwo(rows, channels, sums, products, [&](int64_t at, int64_t few, float* first, float* other) {
    CorrelateRows(from(ct, at), from(ct2, at), from(y, at), from(x, at),
                  kept == nullptr ? nullptr : kept + at * channels, few, channels, mean, first, other);
  });
  std::vector<float> a(channels), b(channels), d(channels);
  for (int64_t c = 0; c < channels; ++c) {
    const double rstd = 1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    dshift[c] = static_cast<float>(sums[c]);
    dscale[c] = static_cast<float>(products[c] * rstd);
    a[c] = static_cast<float>(scale[c] * rstd);
    b[c] = static_cast<float>(-scale[c] * rstd * rstd * rstd * products[c] / rows);
    d[c] = static_cast<float>(-scale[c] * rstd * sums[c] / rows);
  }
  const T* g = kept == nullptr ? ct : kept;
  const T* masked_by = kept == nullptr ? y : nullptr;
  ForRows(rows, channels, [&](int64_t at, int64_t few) {
    DifferentiateRows(from(g, at), from(masked_by, at), from(x, at), dx + at * channels, few, channels, mean, a.data(),
                      b.data(), d.data());
  });
}

// Channels-first images: a thread has whole channels, each a row of places in every image.

template <typename T>
MYCELIA_INLINE void MomentsOfRow(const T* x, int64_t places, float around, double* sum, double* square) {
  for (int64_t begin = 0; begin < places; begin += 1024) {
    const int64_t end = std::min(places, begin + 1024);
    float s = 0.f, q = 0.f;
#pragma omp simd reduction(+ : s, q)
    for (int64_t i = begin; i < end; ++i) {
      const float d = ToFloat(x[i]) - around;
      s += d;
      q += d * d;
    }
    *sum += s;
    *square += q;
  }
}

template <typename T>
MYCELIA_INLINE void NormalizeRow(const T* x, T* y, int64_t places, float mean, float gain, float shift) {
#pragma omp simd
  for (int64_t i = 0; i < places; ++i) Store(&y[i], (ToFloat(x[i]) - mean) * gain + shift);
}

template <typename T>
MYCELIA_INLINE void CorrelateRow(const T* ct, const T* x, int64_t places, float mean, double* sum, double* product) {
  for (int64_t begin = 0; begin < places; begin += 1024) {
    const int64_t end = std::min(places, begin + 1024);
    float s = 0.f, p = 0.f;
#pragma omp simd reduction(+ : s, p)
    for (int64_t i = begin; i < end; ++i) {
      const float g = ToFloat(ct[i]);
      s += g;
      p += g * (ToFloat(x[i]) - mean);
    }
    *sum += s;
    *product += p;
  }
}

template <typename T>
MYCELIA_INLINE void DifferentiateRow(const T* ct, const T* x, T* dx, int64_t places, float mean, float a, float b,
                                     float d) {
#pragma omp simd
  for (int64_t i = 0; i < places; ++i) Store(&dx[i], a * ToFloat(ct[i]) + b * (ToFloat(x[i]) - mean) + d);
}

#define MYCELIA_FOR_ROW(T)                                                                                       \
  MYCELIA_CLONES void MomentsRow(const T* x, int64_t places, float around, double* sum, double* square) {        \
    MomentsOfRow<T>(x, places, around, sum, square);                                                             \
  }                                                                                                              \
  MYCELIA_CLONES void NormalizedRow(const T* x, T* y, int64_t places, float mean, float gain, float shift) {     \
    NormalizeRow<T>(x, y, places, mean, gain, shift);                                                            \
  }                                                                                                              \
  MYCELIA_CLONES void CorrelatedRow(const T* ct, const T* x, int64_t places, float mean, double* s, double* p) { \
    CorrelateRow<T>(ct, x, places, mean, s, p);                                                                  \
  }                                                                                                              \
  MYCELIA_CLONES void DifferentiatedRow(const T* ct, const T* x, T* dx, int64_t places, float mean, float a,     \
                                        float b, float d) {                                                      \
    DifferentiateRow<T>(ct, x, dx, places, mean, a, b, d);                                                       \
  }
MYCELIA_FOR_ROW(float)
MYCELIA_FOR_ROW(BFloat16)

template <typename T>
void ForwardFirst(const ffi::AnyBuffer& image, ffi::RemainingArgs& args, ffi::RemainingRets& rets, float epsilon) {
  auto dims = image.dimensions();
  const int64_t images = dims[0], channels = dims[1];
  const int64_t places = image.element_count() / (images * channels);
  const float *scale = DataOf<float>(args.get<ffi::AnyBuffer>(1).value()),
              *shift = DataOf<float>(args.get<ffi::AnyBuffer>(2).value());
  auto ret = [&](size_t i) { return static_cast<void*>((*rets.get<ffi::AnyBuffer>(i).value()).untyped_data()); };
  const T* x = DataOf<T>(image);
  T* y = static_cast<T*>(ret(0));
  float *mean = static_cast<float*>(ret(1)), *variance = static_cast<float*>(ret(2));
#pragma omp parallel for if (image.element_count() >= 8192)
  for (int64_t c = 0; c < channels; ++c) {
    const float around = ToFloat(x[c * places]);
    double sum = 0.0, square = 0.0;
    for (int64_t n = 0; n < images; ++n) MomentsRow(x + (n * channels + c) * places, places, around, &sum, &square);
    const double count = static_cast<double>(images * places), away = sum / count;
    const double spread = square / count - away * away;
    mean[c] = static_cast<float>(around + away);
    variance[c] = static_cast<float>(spread < 0.0 ? 0.0 : spread);
    const float gain = scale[c] / std::sqrt(variance[c] + epsilon);
    for (int64_t n = 0; n < images; ++n) {
      const int64_t at = (n * channels + c) * places;
      NormalizedRow(x + at, y + at, places, mean[c], gain, shift[c]);
    }
  }
}

template <typename T>
void BackwardFirst(const ffi::AnyBuffer& image, ffi::RemainingArgs& args, ffi::RemainingRets& rets, float epsilon) {
  auto dims = image.dimensions();
  const int64_t images = dims[0], channels = dims[1];
  const int64_t places = image.element_count() / (images * channels);
  auto arg = [&](size_t i) { return args.get<ffi::AnyBuffer>(i).value(); };
  auto ret = [&](size_t i) { return static_cast<void*>((*rets.get<ffi::AnyBuffer>(i).value()).untyped_data()); };
  const T *ct = DataOf<T>(image), *x = DataOf<T>(arg(1));
  const float *mean = DataOf<float>(arg(2)), *variance = DataOf<float>(arg(3)), *scale = DataOf<float>(arg(4));
  T* dx = static_cast<T*>(ret(0));
  float *dscale = static_cast<float*>(ret(1)), *dshift = static_cast<float*>(ret(2));
#pragma omp parallel for if (image.element_count() >= 8192)
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0.0, product = 0.0;
    for (int64_t n = 0; n < images; ++n) {
      const int64_t at = (n * channels + c) * places;
      CorrelatedRow(ct + at, x + at, places, mean[c], &sum, &product);
    }
    const double count = static_cast<double>(images * places);
    const double rstd = 1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    dshift[c] = static_cast<float>(sum);
    dscale[c] = static_cast<float>(product * rstd);
    const float a = static_cast<float>(scale[c] * rstd),
                b = static_cast<float>(-scale[c] * rstd * rstd * rstd * product / count),
                d = static_cast<float>(-scale[c] * rstd * sum / count);
    for (int64_t n = 0; n < images; ++n) {
      const int64_t at = (n * channels + c) * places;
      DifferentiatedRow(ct + at, x + at, dx + at, places, mean[c], a, b, d);
    }
  }
}

ffi::Error BatchNormFirst(ffi::RemainingArgs args, ffi::RemainingRets rets, bool backward, float epsilon) {
  return Guarded([&] {
    const ffi::AnyBuffer image = args.get<ffi::AnyBuffer>(0).value();
    const bool wide = image.element_type() == ffi::DataType::F32;
    if (backward) {
      wide ? BackwardFirst<float>(image, args, rets, epsilon) : BackwardFirst<BFloat16>(image, args, rets, epsilon);
    } else {
      wide ? ForwardFirst<float>(image, args, rets, epsilon) : ForwardFirst<BFloat16>(image, args, rets, epsilon);
    }
  });
}

ffi::Error BatchNorm(ffi::RemainingArgs args, ffi::RemainingRets rets, bool relu, float epsilon) {
  return Guarded([&] {
    if (args.get<ffi::AnyBuffer>(0).value().element_type() == ffi::DataType::F32) {
      Forward<float>(args, rets, relu, epsilon);
    } else {
      Forward<BFloat16>(args, rets, relu, epsilon);
    }
  });
}

ffi::Error BatchNormGrad(ffi::RemainingArgs args, ffi::RemainingRets rets, bool second, bool mask, float epsilon) {
  return Guarded([&] {
    if (args.get<ffi::AnyBuffer>(0).value().element_type() == ffi::DataType::F32) {
      Backward<float>(args, rets, second, mask, epsilon);
    } else {
      Backward<BFloat16>(args, rets, second, mask, epsilon);
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_batch_norm, mycelia::BatchNorm,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<bool>("relu").Attr<float>("epsilon"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_batch_norm_grad, mycelia::BatchNormGrad,
                              xla::ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<bool>("second")
                                  .Attr<bool>("mask")
                                  .Attr<float>("epsilon"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_batch_norm_first, mycelia::BatchNormFirst,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<bool>("backward").Attr<float>("epsilon"));
