// Operators over rows: softmax, layer norm, RMS norm, cross entropy, GELU, and their gradients.
//
// Each array is one of `count` rows of `length` elements of float32 or bfloat16, and is worked on row by row, while the
// row is in the cache; all arithmetic is float32. What is summed over rows (gradients of scales) is summed in a fixed
// number of parts, so that results do not depend on the number of threads.
#include <omp.h>

#include <algorithm>

#include "functions.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kParts = 16;      // of sums over rows
constexpr float kFar = 1e4f;        // here GELU has reached its limits
constexpr int64_t kAlone = 16384;   // at most this many elements are not worth a second thread

// Leaf functions: one row ---------------------------------------------------------------------------------

MYCELIA_CLONES void Widen(const BFloat16* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = ToFloat(from[i]);
}

MYCELIA_CLONES void Narrow(const float* from, BFloat16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) Store(&to[i], from[i]);
}

MYCELIA_INLINE float Largest(const float* x, int64_t n) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// y = exp(x - largest); the sum of y
MYCELIA_INLINE float Powers(const float* x, float largest, float* y, int64_t n) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const float power = Exp(x[i] - largest);
    y[i] = power;
    sum += power;
  }
  return sum;
}

MYCELIA_INLINE float SumOfPowers(const float* x, float largest, int64_t n) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += Exp(x[i] - largest);
  return sum;
}

MYCELIA_CLONES void Softmax(const float* x, float* y, int64_t n) {
  const float factor = 1.f / Powers(x, Largest(x, n), y, n);
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

MYCELIA_CLONES void LogSoftmax(const float* x, float* y, int64_t n) {
  const float largest = Largest(x, n), log = std::log(SumOfPowers(x, largest, n));
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - largest - log;
}

MYCELIA_CLONES void SoftmaxGrad(const float* ct, const float* y, float* dx, int64_t n) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += ct[i] * y[i];
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (ct[i] - sum);
}

MYCELIA_CLONES void LogSoftmaxGrad(const float* ct, const float* y, float* dx, int64_t n) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += ct[i];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = ct[i] - Exp(y[i]) * sum;
}

// The logarithm of the sum of powers of a row, without its largest element, which is given back too.
MYCELIA_CLONES void LogSum(const float* x, int64_t n, float* largest, float* log) {
  *largest = Largest(x, n);
  *log = std::log(SumOfPowers(x, *largest, n));
}

// scale * (counts * softmax(x))
MYCELIA_CLONES void CrossEntropyGrad(const float* x, float scale, float counts, float* dx, int64_t n) {
  const float factor = counts / Powers(x, Largest(x, n), dx, n);
  for (int64_t i = 0; i < n; ++i) dx[i] = scale * (factor * dx[i]);
}

MYCELIA_CLONES void Gelu(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    float power;
    const float cut = x[i] < -kFar ? -kFar : x[i];
    y[i] = cut * Normal(cut, &power);
  }
}

MYCELIA_CLONES void GeluGrad(const float* ct, const float* x, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    float power;
    float cut = x[i] < -kFar ? -kFar : x[i];
    cut = cut > kFar ? kFar : cut;
    const float below = Normal(cut, &power);
    dx[i] = ct[i] * (below + cut * power * 0.398942280f);
  }
}

// Mean (0 if not centred) and 1 / deviation of a row, and the normalized row.
MYCELIA_CLONES void Norm(const float* x, const float* scale, const float* shift, float epsilon, bool centred, float* y,
                         float* mean, float* rstd, int64_t n) {
  float sum = 0.f;
  if (centred) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += x[i];
  }
  const float m = sum / n;
  float squares = 0.f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - m) * (x[i] - m);
  const float r = 1.f / std::sqrt(squares / n + epsilon);
  if (shift != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * r * scale[i] + shift[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * r * scale[i];
  }
  if (mean != nullptr) *mean = m;
  *rstd = r;
}

MYCELIA_CLONES void NormGrad(const float* ct, const float* x, const float* scale, float mean, float rstd, bool centred,
                             float* dx, float* d_scale, float* d_shift, int64_t n) {
  float sum = 0.f, product = 0.f;
#pragma omp simd reduction(+ : sum, product)
  for (int64_t i = 0; i < n; ++i) {
    const float normal = (x[i] - mean) * rstd, g = ct[i] * scale[i];
    sum += g;
    product += g * normal;
    d_scale[i] += ct[i] * normal;
    d_shift[i] += ct[i];
  }
  sum = centred ? sum / n : 0.f;
  product /= n;
  for (int64_t i = 0; i < n; ++i) {
    const float normal = (x[i] - mean) * rstd, g = ct[i] * scale[i];
    dx[i] = rstd * (g - sum - normal * product);
  }
}

MYCELIA_CLONES void Add(const float* x, float* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// Rows of arrays -------------------------------------------------------------------------------------------

class Array {
 public:
  Array(void* data, ffi::DataType type, int64_t length)
      : data_(data), half_(type == ffi::DataType::BF16), length_(length) {}
  // A row to be read: where it lies, or widened into `room`.
  const float* Read(int64_t row, float* room) const {
    if (!half_) return static_cast<const float*>(data_) + row * length_;
    Widen(static_cast<const BFloat16*>(data_) + row * length_, room, length_);
    return room;
  }
  // Where a row is to be written; `Written` ends it.
  float* Place(int64_t row, float* room) const { return half_ ? room : static_cast<float*>(data_) + row * length_; }
  void Written(int64_t row, const float* room) const {
    if (half_) Narrow(room, static_cast<BFloat16*>(data_) + row * length_, length_);
  }

 private:
  void* data_;
  bool half_;
  int64_t length_;
};

struct Given {
  ffi::RemainingArgs args;
  ffi::RemainingRets rets;
  int64_t count = 0, length = 0;

  ffi::AnyBuffer In(size_t i) const {
    auto buffer = args.get<ffi::AnyBuffer>(i);
    if (!buffer.has_value()) throw std::invalid_argument("too few arguments");
    return *buffer;
  }
  ffi::AnyBuffer Out(size_t i) const {
    auto buffer = rets.get<ffi::AnyBuffer>(i);
    if (!buffer.has_value()) throw std::invalid_argument("too few results");
    return **buffer;
  }
  static void Check(const ffi::AnyBuffer& b, int64_t elements) {
    if (static_cast<int64_t>(b.element_count()) != elements) throw std::invalid_argument("an array of another size");
  }
  Array Whole(const ffi::AnyBuffer& b) const {
    Check(b, count * length);
    if (!Served(b.element_type())) throw std::invalid_argument("rows are float32 or bfloat16");
    return Array(b.untyped_data(), b.element_type(), length);
  }
  float* Floats(const ffi::AnyBuffer& b, int64_t elements) const {
    Check(b, elements);
    if (b.element_type() != ffi::DataType::F32) throw std::invalid_argument("an array that is not float32");
    return static_cast<float*>(b.untyped_data());
  }
};

int64_t RowRoom(int64_t length) { return (length + 15) / 16 * 16; }

// Runs `row(i, room)` for all rows; `room` has space for three rows.
template <typename Row>
void ForRows(const Given& g, Row row) {
  const int64_t room = 3 * RowRoom(g.length);
  float* scratch = static_cast<float*>(Scratch(7, omp_get_max_threads() * room * sizeof(float)));
#pragma omp parallel for schedule(static) if (g.count * g.length > kAlone)
  for (int64_t i = 0; i < g.count; ++i) row(i, scratch + omp_get_thread_num() * room);
}

template <typename Leaf>
void OneToOne(const Given& g, Leaf leaf) {
  const Array x = g.Whole(g.In(0)), y = g.Whole(g.Out(0));
  ForRows(g, [&](int64_t i, float* room) {
    float* to = y.Place(i, room + RowRoom(g.length));
    leaf(x.Read(i, room), to, g.length);
    y.Written(i, to);
  });
}

template <typename Leaf>
void TwoToOne(const Given& g, Leaf leaf) {
  const Array ct = g.Whole(g.In(0)), y = g.Whole(g.In(1)), dx = g.Whole(g.Out(0));
  const int64_t next = RowRoom(g.length);
  ForRows(g, [&](int64_t i, float* room) {
    float* to = dx.Place(i, room + 2 * next);
    leaf(ct.Read(i, room), y.Read(i, room + next), to, g.length);
    dx.Written(i, to);
  });
}

// x, scale[, shift] -> y, [mean,] rstd
void Normalize(const Given& g, float epsilon, bool centred) {
  const Array x = g.Whole(g.In(0)), y = g.Whole(g.Out(0));
  const float* scale = g.Floats(g.In(1), g.length);
  const float* shift = g.args.size() > 2 ? g.Floats(g.In(2), g.length) : nullptr;
  float* mean = centred ? g.Floats(g.Out(1), g.count) : nullptr;
  float* rstd = g.Floats(g.Out(centred ? 2 : 1), g.count);
  ForRows(g, [&](int64_t i, float* room) {
    float* to = y.Place(i, room + RowRoom(g.length));
    Norm(x.Read(i, room), scale, shift, epsilon, centred, to, mean ? mean + i : nullptr, rstd + i, g.length);
    y.Written(i, to);
  });
}

// ct, x, [mean,] rstd, scale -> dx, d_scale[, d_shift]
void NormalizeGrad(const Given& g, bool centred) {
  const Array ct = g.Whole(g.In(0)), x = g.Whole(g.In(1)), dx = g.Whole(g.Out(0));
  const float* mean = centred ? g.Floats(g.In(2), g.count) : nullptr;
  const float* rstd = g.Floats(g.In(centred ? 3 : 2), g.count);
  const float* scale = g.Floats(g.In(centred ? 4 : 3), g.length);
  float* d_scale = g.Floats(g.Out(1), g.length);
  float* d_shift = centred ? g.Floats(g.Out(2), g.length) : nullptr;
  const int64_t next = RowRoom(g.length), parts = std::min(kParts, g.count);
  // for each part: two sums and space for three rows
  float* scratch = static_cast<float*>(Scratch(7, parts * 5 * next * sizeof(float)));
#pragma omp parallel for schedule(static) if (g.count * g.length > kAlone)
  for (int64_t part = 0; part < parts; ++part) {
    float* sums = scratch + part * 5 * next;
    float* room = sums + 2 * next;
    std::fill(sums, sums + 2 * next, 0.f);
    for (int64_t i = part * g.count / parts; i < (part + 1) * g.count / parts; ++i) {
      float* to = dx.Place(i, room + 2 * next);
      NormGrad(ct.Read(i, room), x.Read(i, room + next), scale, mean ? mean[i] : 0.f, rstd[i], centred, to, sums,
               sums + next, g.length);
      dx.Written(i, to);
    }
  }
  for (int64_t part = 1; part < parts; ++part) Add(scratch + part * 5 * next, scratch, 2 * next);
  std::copy_n(scratch, g.length, d_scale);
  if (d_shift != nullptr) std::copy_n(scratch + next, g.length, d_shift);
}

const int64_t* Labels(const Given& g, const ffi::AnyBuffer& b) {
  Given::Check(b, g.count);
  if (b.element_type() != ffi::DataType::S64) throw std::invalid_argument("labels are int64");
  return static_cast<const int64_t*>(b.untyped_data());
}

// x, labels -> the loss of each row: 0 where the label is ignored, NaN where there is no such class
void CrossEntropy(const Given& g, int64_t ignored) {
  const Array x = g.Whole(g.In(0));
  const int64_t* labels = Labels(g, g.In(1));
  float* loss = g.Floats(g.Out(0), g.count);
  ForRows(g, [&](int64_t i, float* room) {
    if (labels[i] == ignored) {
      loss[i] = 0.f;
      return;
    }
    const int64_t label = labels[i];
    if (label < 0 || label >= g.length) {
      loss[i] = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    const float* row = x.Read(i, room);
    float largest, log;
    LogSum(row, g.length, &largest, &log);
    loss[i] = -(row[label] - largest - log);
  });
}

// a factor for each row, x, labels -> the gradient of x: NaN where there is no such class
void CrossEntropyBack(const Given& g, int64_t ignored) {
  const float* scale = g.Floats(g.In(0), g.count);
  const Array x = g.Whole(g.In(1)), dx = g.Whole(g.Out(0));
  const int64_t* labels = Labels(g, g.In(2));
  ForRows(g, [&](int64_t i, float* room) {
    const int64_t label = labels[i];
    const bool counts = label != ignored, known = label >= 0 && label < g.length;
    float* to = dx.Place(i, room + RowRoom(g.length));
    if (counts && !known) {
      std::fill_n(to, g.length, std::numeric_limits<float>::quiet_NaN());
    } else {
      CrossEntropyGrad(x.Read(i, room), scale[i], counts ? 1.f : 0.f, to, g.length);
      if (counts) to[label] -= scale[i];
    }
    dx.Written(i, to);
  });
}

enum Kind : int64_t {
  kSoftmax, kLogSoftmax, kSoftmaxGrad, kLogSoftmaxGrad, kLayerNorm, kLayerNormGrad, kRmsNorm, kRmsNormGrad,
  kCrossEntropy, kCrossEntropyGrad, kGelu, kGeluGrad
};

ffi::Error Rows(ffi::RemainingArgs args, ffi::RemainingRets rets, int64_t kind, int64_t length, int64_t ignored,
                float epsilon) {
  return Guarded([&] {
    Given g{args, rets};
    g.length = length;
    const ffi::AnyBuffer whole = g.In(kind == kCrossEntropyGrad ? 1 : 0);
    if (length < 1 || whole.element_count() % length != 0) throw std::invalid_argument("malformed rows");
    g.count = whole.element_count() / length;
    switch (kind) {
      case kSoftmax: return OneToOne(g, Softmax);
      case kLogSoftmax: return OneToOne(g, LogSoftmax);
      case kSoftmaxGrad: return TwoToOne(g, SoftmaxGrad);
      case kLogSoftmaxGrad: return TwoToOne(g, LogSoftmaxGrad);
      case kLayerNorm: return Normalize(g, epsilon, true);
      case kLayerNormGrad: return NormalizeGrad(g, true);
      case kRmsNorm: return Normalize(g, epsilon, false);
      case kRmsNormGrad: return NormalizeGrad(g, false);
      case kCrossEntropy: return CrossEntropy(g, ignored);
      case kGelu: return OneToOne(g, Gelu);
      case kGeluGrad: return TwoToOne(g, GeluGrad);
      case kCrossEntropyGrad: return CrossEntropyBack(g, ignored);
      default: throw std::invalid_argument("no such kind of rows");
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_rows, mycelia::Rows,
                              xla::ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<int64_t>("kind")
                                  .Attr<int64_t>("length")
                                  .Attr<int64_t>("ignored")
                                  .Attr<float>("epsilon"));
