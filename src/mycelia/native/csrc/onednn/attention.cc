// Scaled dot-product attention and its gradient, block by block (T. Dao et al., "FlashAttention", 2022).
//
// A block is some rows of one head: their scores with all columns that any of them may attend to, in scratch memory of
// half a megabyte; softmax of its rows; its product with the values. The gradient makes the weights of a block again
// from the logarithm of each row's sum. Products are oneDNN's, sequential in each thread. Threads share the heads out,
// so gradients of keys and values are added by one thread each.
//
// Columns that no row of a block gives weight to are left out of it at both ends: those outside the band, and those
// whose mask is so low that their powers are exactly zero. For the latter, scores are bounded by the norms of queries and
// keys. Nothing is left out where an input is not finite, so that NaN goes where it goes in a whole softmax.
//
// Arguments: query, key and value, or all of them in one array; for the gradient first the cotangent, the result, the
// logarithms and possibly their cotangent; last the mask if there is one. Attribute `geometry`: batch, heads, heads of
// keys, rows, columns, features, features of values, layout (0 heads before rows, 1 rows before heads, 2 likewise in one
// array), before, after, from end, zeros for closed rows, whether a mask selects, strides of the mask (batch, heads,
// rows; 0 where it is broadcast), whether there is a mask, whether there is a cotangent of the logarithms.
#include <omp.h>

#include <algorithm>

#include "functions.h"
#include "onednn.h"

namespace mycelia {
namespace {

constexpr int64_t kScores = 131072;  // scores of a block
constexpr int64_t kMostRows = 64;   // rows of a block
constexpr int64_t kTile = 32;        // columns that are left out together
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Leaf functions -----------------------------------------------------------------------------------------

// rows of n elements, `step` apart, as floats that lie together
MYCELIA_CLONES void Gather(const BFloat16* from, int64_t step, float* to, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) to[r * n + i] = ToFloat(from[r * step + i]);
  }
}

MYCELIA_CLONES void Scatter(const float* from, BFloat16* to, int64_t step, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) Store(&to[r * step + i], from[r * n + i]);
  }
}

// The largest sum of squares of a row; infinity or NaN if an element is not finite.
MYCELIA_CLONES float LargestNorm(const float* x, int64_t step, int64_t rows, int64_t n) {
  float largest = 0.f;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * step;
    float sum = 0.f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += row[i] * row[i];
    if (!(sum <= largest)) largest = sum;
    if (largest != largest) return largest;
  }
  return largest;
}

MYCELIA_INLINE float Largest(const float* x, int64_t n) {
  float largest = -kInfinity;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// How far below its row's largest element a mask is at least, in each tile of columns, over some rows.
MYCELIA_CLONES void Depths(const float* mask, int64_t step, int64_t rows, int64_t columns, float* depths) {
  const int64_t tiles = (columns + kTile - 1) / kTile;
  for (int64_t t = 0; t < tiles; ++t) depths[t] = kInfinity;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = mask + r * step;
    const float largest = Largest(row, columns);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t n = std::min(kTile, columns - t * kTile);
      bool nan = false;
      for (int64_t i = 0; i < n; ++i) nan |= row[t * kTile + i] != row[t * kTile + i];
      // a row that is all -infinity, or has an infinity, is not finite: nothing of it is left out
      const bool known = !nan && largest < kInfinity && largest > -kInfinity;
      depths[t] = std::min(depths[t], known ? largest - Largest(row + t * kTile, n) : 0.f);
    }
  }
}

// A mask: what is added to scores, or 0 where a score is kept and -infinity where `fill` stands for it.
struct MaskRow {
  const float* data;
  bool selects;
  float fill;
};

MYCELIA_INLINE void AddMask(float* s, MaskRow row, int64_t n) {
  const float* mask = row.data;
  const float fill = row.fill;
  if (row.selects) {
    for (int64_t i = 0; i < n; ++i) s[i] = mask[i] == -kInfinity ? fill : s[i];
  } else {
    for (int64_t i = 0; i < n; ++i) s[i] += mask[i];
  }
}

// Scores of a row of n columns, of which [begin, end) are allowed, become powers; the factor that makes them weights.
MYCELIA_CLONES float SoftmaxRow(float* s, MaskRow mask, int64_t begin, int64_t end, bool zeros, float* log, int64_t n) {
  if (mask.data != nullptr) AddMask(s, mask, n);
  for (int64_t i = 0; i < begin; ++i) s[i] = -kInfinity;
  for (int64_t i = end; i < n; ++i) s[i] = -kInfinity;
  const float largest = Largest(s, n);
  if (largest == -kInfinity) {
    bool nan = !zeros;
    for (int64_t i = 0; i < n; ++i) nan |= s[i] != s[i];
    const float all = nan ? std::numeric_limits<float>::quiet_NaN() : 0.f;
    for (int64_t i = 0; i < n; ++i) s[i] = all;
    *log = nan ? all : -kInfinity;
    return 1.f;
  }
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const float power = Exp(s[i] - largest);
    s[i] = power;
    sum += power;
  }
  *log = largest + std::log(sum);
  return 1.f / sum;
}

MYCELIA_CLONES void Multiply(float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

MYCELIA_CLONES float Dot(const float* a, const float* b, int64_t n) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Scores become weights, and what came back to the weights becomes the gradient of the product of query and key.
MYCELIA_CLONES void SoftmaxRowGrad(float* s, float* d, MaskRow mask, int64_t begin, int64_t end, bool zeros, float log,
                                   float shared, float scale, int64_t n) {
  if (zeros && log == -kInfinity) {
    for (int64_t i = 0; i < n; ++i) s[i] = d[i] = 0.f;
    return;
  }
  if (mask.data != nullptr) AddMask(s, mask, n);
  for (int64_t i = 0; i < begin; ++i) s[i] = -kInfinity;
  for (int64_t i = end; i < n; ++i) s[i] = -kInfinity;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float weight = Exp(s[i] - log);
    s[i] = weight;
    d[i] = weight * (d[i] - shared) * scale;
  }
  if (mask.data != nullptr && mask.selects) {
    for (int64_t i = 0; i < n; ++i) d[i] = mask.data[i] == -kInfinity ? 0.f : d[i];
  }
  for (int64_t i = 0; i < begin; ++i) d[i] = 0.f;
  for (int64_t i = end; i < n; ++i) d[i] = 0.f;
}

// ---------------------------------------------------------------------------------------------------------

struct Geometry {
  int64_t batch, heads, groups, rows, columns, features, values, layout, before, after, from_end, zeros, selects;
  int64_t mask_strides[3];
  int64_t masked, statistic;
  float scale, fill;

  int64_t each() const { return heads / groups; }
  int64_t block() const { return std::clamp<int64_t>(kScores / columns / 16 * 16, 16, kMostRows); }
  int64_t blocks() const { return (rows + block() - 1) / block(); }
  int64_t tiles() const { return (columns + kTile - 1) / kTile; }
};

Geometry Read(ffi::Span<const int64_t> values, float scale, float fill) {
  if (values.size() != 18) throw std::invalid_argument("malformed geometry");
  Geometry g;
  const int64_t* v = values.begin();
  g.batch = v[0], g.heads = v[1], g.groups = v[2], g.rows = v[3], g.columns = v[4], g.features = v[5], g.values = v[6];
  g.layout = v[7], g.before = v[8], g.after = v[9], g.from_end = v[10], g.zeros = v[11], g.selects = v[12];
  std::copy_n(v + 13, 3, g.mask_strides);
  g.masked = v[16], g.statistic = v[17], g.scale = scale, g.fill = fill;
  if (g.groups < 1 || g.heads % g.groups != 0) throw std::invalid_argument("malformed geometry");
  return g;
}

// One of the arrays of heads: where it begins, and how far apart things are.
struct Heads {
  char* data;
  bool half;
  int64_t batch, head, row, features;

  // The rows of a head from one on, as elements; `row` apart.
  int64_t At(int64_t b, int64_t h, int64_t r) const { return b * batch + h * head + r * row; }
  const float* Floats(int64_t at) const { return reinterpret_cast<const float*>(data) + at; }
  float* Floats(int64_t at) { return reinterpret_cast<float*>(data) + at; }
};

Heads Whole(const ffi::AnyBuffer& buffer, int64_t layout, int64_t heads, int64_t rows, int64_t features, int64_t batch,
            int64_t part = 0) {
  const int64_t parts = layout == 2 ? 3 : 1;
  if (static_cast<int64_t>(buffer.element_count()) != batch * heads * rows * features * parts ||
      !Served(buffer.element_type())) {
    throw std::invalid_argument("an array of heads of another size or dtype");
  }
  Heads made;
  made.half = buffer.element_type() == ffi::DataType::BF16;
  made.data = static_cast<char*>(buffer.untyped_data());
  made.features = features;
  made.batch = heads * rows * features * parts;
  made.head = layout == 0 ? rows * features : features;
  made.row = layout == 0 ? features : heads * features * parts;
  made.data += part * heads * features * (made.half ? 2 : 4);
  return made;
}

// Rows of a head as floats: where they lie, or widened into `room`.
struct Matrix {
  const float* data;
  int64_t step;
};

Matrix Take(const Heads& x, int64_t at, int64_t rows, float* room) {
  if (!x.half) return {x.Floats(at), x.row};
  Gather(reinterpret_cast<const BFloat16*>(x.data) + at, x.row, room, rows, x.features);
  return {room, x.features};
}

// out = alpha * op(a) op(b) + beta * out, of m x n elements with k products each
void Product(bool turn_a, bool turn_b, int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta,
             float* out, int64_t step) {
  const dnnl_status_t status = dnnl_sgemm(turn_a ? 'T' : 'N', turn_b ? 'T' : 'N', m, n, k, alpha, a.data, a.step,
                                          b.data, b.step, beta, out, step);
  if (status != dnnl_success) throw dnnl::error(status, "sgemm");
}

struct Range {
  int64_t begin, end;
};

// The allowed columns of a row.
Range Band(const Geometry& g, int64_t row) {
  const int64_t at = row + (g.from_end ? g.columns - g.rows : 0);
  const int64_t begin = std::clamp<int64_t>(at - g.before, 0, g.columns);
  return {begin, std::clamp<int64_t>(at + g.after + 1, begin, g.columns)};
}

const float* FloatsOf(const ffi::AnyBuffer& buffer) {
  if (buffer.element_type() != ffi::DataType::F32) throw std::invalid_argument("an array that is not float32");
  return static_cast<const float*>(buffer.untyped_data());
}

// The mask, and how deep its tiles are for each block of rows.
class Mask {
 public:
  Mask(const Geometry& g, const ffi::AnyBuffer* buffer, int slot) : g_(g) {
    if (buffer == nullptr) return;
    data_ = FloatsOf(*buffer);
    int64_t largest = g.columns;
    const int64_t counts[3] = {g.batch, g.heads, g.rows};
    for (int i = 0; i < 3; ++i) largest += (counts[i] - 1) * g.mask_strides[i];
    if (largest > static_cast<int64_t>(buffer->element_count())) throw std::invalid_argument("a mask that is too small");
    // for a mask that differs from head to head it would cost as much as it saves
    if (g.mask_strides[0] != 0 && g.mask_strides[1] != 0) return;
    slices_ = g.mask_strides[0] != 0 ? g.batch : g.mask_strides[1] != 0 ? g.heads : 1;
    depths_ = static_cast<float*>(Scratch(slot, slices_ * g.blocks() * g.tiles() * sizeof(float)));
    const int64_t step = g.mask_strides[0] + g.mask_strides[1];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < slices_ * g.blocks(); ++i) {
      const int64_t slice = i / g.blocks(), first = i % g.blocks() * g.block();
      const int64_t rows = g.mask_strides[2] == 0 ? 1 : std::min(g.block(), g.rows - first);
      Depths(data_ + slice * step + first * g.mask_strides[2], g.mask_strides[2], rows, g.columns,
             depths_ + i * g.tiles());
    }
  }

  MaskRow Row(int64_t b, int64_t h, int64_t row, int64_t column) const {
    if (data_ == nullptr) return {nullptr, false, 0.f};
    const int64_t* strides = g_.mask_strides;
    return {data_ + b * strides[0] + h * strides[1] + row * strides[2] + column, g_.selects != 0, g_.fill};
  }

  // The columns of a block; scores of it are at most `bound` in size.
  Range Columns(int64_t b, int64_t h, int64_t block, float bound) const {
    const int64_t first = block * g_.block(), last = std::min(first + g_.block(), g_.rows) - 1;
    if (!(bound < kInfinity)) return {0, g_.columns};
    Range all = {Band(g_, first).begin, Band(g_, last).end};
    if (all.end <= all.begin) return {0, std::min(kTile, g_.columns)};
    if (depths_ == nullptr) return all;
    const int64_t slice = g_.mask_strides[0] != 0 ? b : g_.mask_strides[1] != 0 ? h : 0;
    const float* depths = depths_ + (slice * g_.blocks() + block) * g_.tiles();
    // at least 104 below the largest: e^-104 is zero. With a band the largest element may not be allowed.
    if (g_.before < g_.columns || g_.after < g_.columns) return all;
    const float enough = 2.f * bound + 105.f;
    int64_t begin = 0, end = g_.tiles();
    if (g_.selects && !(-g_.fill >= enough)) return all;
    while (begin < end && depths[begin] >= enough) ++begin;
    while (end > begin && depths[end - 1] >= enough) --end;
    if (begin == end) return all;
    return {begin * kTile, std::min(end * kTile, g_.columns)};
  }

 private:
  const Geometry& g_;
  const float* data_ = nullptr;
  float* depths_ = nullptr;
  int64_t slices_ = 0;
};

int64_t Rounded(int64_t n) { return (n + 15) / 16 * 16; }

// A bound of the scores of a head; not finite if anything that is given is not.
float Bound(const Geometry& g, Matrix q, Matrix k, Matrix v, const Matrix* ct) {
  const float size = std::sqrt(LargestNorm(q.data, q.step, g.rows, g.features)) *
                     std::sqrt(LargestNorm(k.data, k.step, g.columns, g.features)) * std::fabs(g.scale) * 1.001f;
  float rest = LargestNorm(v.data, v.step, g.columns, g.values) * 0.f;
  if (ct != nullptr) rest += LargestNorm(ct->data, ct->step, g.rows, g.values) * 0.f;
  return size + rest;
}

// Runs `body(unit, room, failed)` for all units, with room of its own for each thread.
template <typename Body>
void ForUnits(int64_t units, int64_t room, Body body) {
  float* scratch = static_cast<float*>(Scratch(7, omp_get_max_threads() * room * sizeof(float)));
  bool failed = false;
#pragma omp parallel for schedule(dynamic) reduction(|| : failed)
  for (int64_t i = 0; i < units; ++i) {
    try {
      body(i, scratch + omp_get_thread_num() * room);
    } catch (const dnnl::error&) {
      failed = true;
    }
  }
  if (failed) throw std::runtime_error("a product failed");
}

void Forward(const Geometry& g, const Heads& q, const Heads& k, const Heads& v, const Mask& mask, Heads out,
             float* logs) {
  const int64_t block = g.block();
  const int64_t q_room = Rounded(q.half * g.rows * g.features), k_room = Rounded(q.half * g.columns * g.features),
                v_room = Rounded(q.half * g.columns * g.values), o_room = Rounded(q.half * block * g.values);
  const int64_t room = q_room + k_room + v_room + o_room + Rounded(block * g.columns);
  ForUnits(g.batch * g.heads, room, [&](int64_t unit, float* at) {
    const int64_t b = unit / g.heads, h = unit % g.heads;
    const Matrix queries = Take(q, q.At(b, h, 0), g.rows, at);
    const Matrix keys = Take(k, k.At(b, h / g.each(), 0), g.columns, at + q_room);
    const Matrix values = Take(v, v.At(b, h / g.each(), 0), g.columns, at + q_room + k_room);
    float* made = at + q_room + k_room + v_room;
    float* scores = made + o_room;
    const float bound = Bound(g, queries, keys, values, nullptr);
    for (int64_t i = 0; i < g.blocks(); ++i) {
      const int64_t first = i * block, rows = std::min(block, g.rows - first);
      const Range range = mask.Columns(b, h, i, bound);
      const int64_t n = range.end - range.begin;
      Product(false, true, rows, n, g.features, g.scale, {queries.data + first * queries.step, queries.step},
              {keys.data + range.begin * keys.step, keys.step}, 0.f, scores, n);
      float factors[kMostRows];
      for (int64_t r = 0; r < rows; ++r) {
        const Range band = Band(g, first + r);
        factors[r] = SoftmaxRow(scores + r * n, mask.Row(b, h, first + r, range.begin),
                                std::clamp<int64_t>(band.begin - range.begin, 0, n),
                                std::clamp<int64_t>(band.end - range.begin, 0, n), g.zeros,
                                logs + unit * g.rows + first + r, n);
      }
      float* to = out.half ? made : out.Floats(out.At(b, h, first));
      const int64_t step = out.half ? g.values : out.row;
      Product(false, false, rows, g.values, n, 1.f, {scores, n}, {values.data + range.begin * values.step, values.step},
              0.f, to, step);
      for (int64_t r = 0; r < rows; ++r) Multiply(to + r * step, factors[r], g.values);
      if (out.half) {
        Scatter(made, reinterpret_cast<BFloat16*>(out.data) + out.At(b, h, first), out.row, rows, g.values);
      }
    }
  });
}

struct Gradient {
  Heads q, k, v, ct, out, dq, dk, dv;
  const float *logs, *d_logs;
};

void Backward(const Geometry& g, Gradient& x, const Mask& mask) {
  const int64_t block = g.block(), half = x.q.half;
  const int64_t wide = g.features + g.values;
  // in this order: keys and values widened, their gradients, queries and cotangent and result, gradient of a block
  const int64_t k_room = Rounded(half * g.columns * wide), d_room = Rounded(half * g.columns * wide),
                q_room = Rounded(half * g.rows * (wide + g.values)), b_room = Rounded(half * block * g.features);
  const int64_t room = k_room + d_room + q_room + b_room + 2 * Rounded(block * g.columns);
  ForUnits(g.batch * g.groups, room, [&](int64_t unit, float* at) {
    const int64_t b = unit / g.groups, group = unit % g.groups;
    const Matrix keys = Take(x.k, x.k.At(b, group, 0), g.columns, at);
    const Matrix values = Take(x.v, x.v.At(b, group, 0), g.columns, at + half * g.columns * g.features);
    float* dk = half ? at + k_room : x.dk.Floats(x.dk.At(b, group, 0));
    float* dv = half ? dk + g.columns * g.features : x.dv.Floats(x.dv.At(b, group, 0));
    const int64_t k_step = half ? g.features : x.dk.row, v_step = half ? g.values : x.dv.row;
    for (int64_t c = 0; c < g.columns; ++c) {
      std::fill_n(dk + c * k_step, g.features, 0.f);
      std::fill_n(dv + c * v_step, g.values, 0.f);
    }
    float* q_at = at + k_room + d_room;
    float* made = q_at + q_room;
    float* scores = made + b_room;
    float* d_scores = scores + Rounded(block * g.columns);
    for (int64_t h = group * g.each(); h < (group + 1) * g.each(); ++h) {
      const Matrix queries = Take(x.q, x.q.At(b, h, 0), g.rows, q_at);
      const Matrix cts = Take(x.ct, x.ct.At(b, h, 0), g.rows, q_at + half * g.rows * g.features);
      const Matrix outs = Take(x.out, x.out.At(b, h, 0), g.rows, q_at + half * g.rows * wide);
      const float bound = Bound(g, queries, keys, values, &cts);
      for (int64_t i = 0; i < g.blocks(); ++i) {
        const int64_t first = i * block, rows = std::min(block, g.rows - first);
        const Range range = mask.Columns(b, h, i, bound);
        const int64_t n = range.end - range.begin;
        const Matrix q = {queries.data + first * queries.step, queries.step};
        const Matrix ct = {cts.data + first * cts.step, cts.step};
        const Matrix k = {keys.data + range.begin * keys.step, keys.step};
        const Matrix v = {values.data + range.begin * values.step, values.step};
        Product(false, true, rows, n, g.features, g.scale, q, k, 0.f, scores, n);
        Product(false, true, rows, n, g.values, 1.f, ct, v, 0.f, d_scores, n);
        for (int64_t r = 0; r < rows; ++r) {
          const Range band = Band(g, first + r);
          const int64_t place = (b * g.heads + h) * g.rows + first + r;
          float shared = Dot(ct.data + r * ct.step, outs.data + (first + r) * outs.step, g.values);
          if (x.d_logs != nullptr) shared -= x.d_logs[place];
          SoftmaxRowGrad(scores + r * n, d_scores + r * n, mask.Row(b, h, first + r, range.begin),
                         std::clamp<int64_t>(band.begin - range.begin, 0, n),
                         std::clamp<int64_t>(band.end - range.begin, 0, n), g.zeros, x.logs[place], shared, g.scale, n);
        }
        Product(true, false, n, g.values, rows, 1.f, {scores, n}, ct, 1.f, dv + range.begin * v_step, v_step);
        Product(true, false, n, g.features, rows, 1.f, {d_scores, n}, q, 1.f, dk + range.begin * k_step, k_step);
        const int64_t to = x.dq.At(b, h, first);
        if (half) {
          Product(false, false, rows, g.features, n, 1.f, {d_scores, n}, k, 0.f, made, g.features);
          Scatter(made, reinterpret_cast<BFloat16*>(x.dq.data) + to, x.dq.row, rows, g.features);
        } else {
          Product(false, false, rows, g.features, n, 1.f, {d_scores, n}, k, 0.f, x.dq.Floats(to), x.dq.row);
        }
      }
    }
    if (half) {
      Scatter(dk, reinterpret_cast<BFloat16*>(x.dk.data) + x.dk.At(b, group, 0), x.dk.row, g.columns, g.features);
      Scatter(dv, reinterpret_cast<BFloat16*>(x.dv.data) + x.dv.At(b, group, 0), x.dv.row, g.columns, g.values);
    }
  });
}

// Query, key and value among arrays from one on.
void Three(const Geometry& g, const std::vector<ffi::AnyBuffer>& arrays, size_t from, Heads* q, Heads* k, Heads* v) {
  const size_t step = g.layout == 2 ? 0 : 1;
  if (arrays.size() <= from + 2 * step) throw std::invalid_argument("too few arrays");
  const int64_t part = g.layout == 2;
  *q = Whole(arrays[from], g.layout, g.heads, g.rows, g.features, g.batch);
  *k = Whole(arrays[from + step], g.layout, g.groups, g.columns, g.features, g.batch, part);
  *v = Whole(arrays[from + 2 * step], g.layout, g.groups, g.columns, g.values, g.batch, 2 * part);
}

ffi::Error Attention(ffi::RemainingArgs args, ffi::RemainingRets rets, int64_t backward,
                     ffi::Span<const int64_t> geometry, float scale, float fill) {
  return Guarded([&] {
    const Geometry g = Read(geometry, scale, fill);
    std::vector<ffi::AnyBuffer> given, made;
    for (size_t i = 0; i < args.size(); ++i) given.push_back(args.get<ffi::AnyBuffer>(i).value());
    for (size_t i = 0; i < rets.size(); ++i) made.push_back(*rets.get<ffi::AnyBuffer>(i).value());
    const size_t from = backward ? 3 + g.statistic : 0;
    if (given.size() != from + (g.layout == 2 ? 1 : 3) + g.masked || made.size() < 1) {
      throw std::invalid_argument("another number of arrays");
    }
    const Mask mask(g, g.masked ? &given.back() : nullptr, 6);
    const int64_t layout = std::min<int64_t>(g.layout, 1);  // of results
    auto result = [&](const ffi::AnyBuffer& b) { return Whole(b, layout, g.heads, g.rows, g.values, g.batch); };
    auto rows = [&](const ffi::AnyBuffer& b) {
      if (static_cast<int64_t>(b.element_count()) != g.batch * g.heads * g.rows) {
        throw std::invalid_argument("logarithms of another size");
      }
      return FloatsOf(b);
    };
    if (!backward) {
      Heads q, k, v;
      Three(g, given, from, &q, &k, &v);
      if (made.size() != 2) throw std::invalid_argument("another number of results");
      Forward(g, q, k, v, mask, result(made[0]), const_cast<float*>(rows(made[1])));
    } else {
      Gradient x;
      x.ct = result(given[0]);
      x.out = result(given[1]);
      x.logs = rows(given[2]);
      x.d_logs = g.statistic ? rows(given[3]) : nullptr;
      Three(g, given, from, &x.q, &x.k, &x.v);
      Three(g, made, 0, &x.dq, &x.dk, &x.dv);
      Backward(g, x, mask);
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_attention, mycelia::Attention,
                              xla::ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<int64_t>("backward")
                                  .Attr<xla::ffi::Span<const int64_t>>("geometry")
                                  .Attr<float>("scale")
                                  .Attr<float>("fill"));
