// A layer of a long short-term memory over a sequence, and its gradients (Hochreiter and Schmidhuber, 1997).
//
// What the inputs contribute to the gates is one product over all steps. Then each thread takes some sequences, and if
// there are more threads than that some units of the state, through all steps: it multiplies the last state by the
// packed weights and runs one loop that makes activations, cell and state. Backwards likewise, from the last step to
// the first; the gradients of the weights and of the input are products over all steps again. Sums are in float32.
//
// Gates are in the order input, forget, candidate, output. Attributes of both, `flags`: whether the batch is the first
// axis, whether steps go from the last to the first. Of the gradients then: whether cotangents of the outputs, of the
// last state and of the last cell are given, whether the gradient of the input and that of a bias are wanted.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "../vectorized.h"
#include "onednn.h"

namespace mycelia {
namespace {

using Memory = dnnl::memory;
using Type = Memory::data_type;

// Numbers ------------------------------------------------------------------------------------------------

// exp(x) = scale * (1 + rest), with scale a power of two: x = k ln 2 + r, and the series of exp(r) - 1 for
// |r| <= ln 2 / 2 up to r^7, whose error is below 1e-8. x is from -87 to 89; where the power of two is too large it is
// infinity.
struct Parts {
  float scale, rest;
};

MYCELIA_INLINE Parts ExpParts(float x) {
  const float shifted = x * 1.44269504f + 12582912.f;  // adding 1.5 * 2^23 rounds to the nearest whole number
  const float k = shifted - 12582912.f;
  const float r = (x - k * 0.693145752f) - k * 1.42860677e-6f;
  float p = 1.f / 5040;
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  return {Bits<float>((Bits<uint32_t>(shifted) << 23) + 0x3f800000u), r + r * r * p};
}

MYCELIA_INLINE float Sigmoid(float x) {
  const float y = x < -89.f ? 89.f : x > 87.f ? -87.f : -x;  // e^89 becomes infinite
  const Parts e = ExpParts(y);
  return 1.f / (1.f + e.scale * (1.f + e.rest));
}

// (e^2|x| - 1) / (e^2|x| + 1): the difference is formed before the power of two, so that small arguments lose nothing.
MYCELIA_INLINE float Tanh(float x) {
  const float a = std::fabs(x);
  const Parts e = ExpParts(a > 10.f ? 20.f : 2 * a);
  const float less = e.scale * e.rest + (e.scale - 1.f);
  return std::copysign(less / (less + 2.f), x);
}

// Steps --------------------------------------------------------------------------------------------------

// What one thread does in one step forward: `rows` sequences, `units` units of states of `size`.
template <typename T>
struct Step {
  int64_t rows, units, size;
  const float* from_state;       // (rows, 4 * units)
  const float* from_input;       // gate g of row r at r * row * 4 * size + g * size
  T* gates;                      // likewise, or null
  float* cells;                  // row r at r * row * size, or null
  float* cell;                   // (rows, units), updated
  T* y;                          // row r at r * row * size
  T* state;                      // row r at r * size
  int64_t row;
};

template <typename T>
MYCELIA_INLINE void Forward(const Step<T>& s) {
  const int64_t n = s.units, h = s.size;
  for (int64_t r = 0; r < s.rows; ++r) {
    const float* a = s.from_state + r * 4 * n;
    const float* b = s.from_input + r * s.row * 4 * h;
    float* cell = s.cell + r * n;
    T* y = s.y + r * s.row * h;
    T* state = s.state + r * h;
    if (s.gates == nullptr) {
#pragma omp simd
      for (int64_t u = 0; u < n; ++u) {
        const float in = Sigmoid(a[u] + b[u]), forget = Sigmoid(a[n + u] + b[h + u]);
        const float made = Tanh(a[2 * n + u] + b[2 * h + u]), out = Sigmoid(a[3 * n + u] + b[3 * h + u]);
        const float c = forget * cell[u] + in * made;
        cell[u] = c;
        const float v = out * Tanh(c);
        Store(y + u, v);
        Store(state + u, v);
      }
      continue;
    }
    T* gates = s.gates + r * s.row * 4 * h;
    float* cells = s.cells + r * s.row * h;
#pragma omp simd
    for (int64_t u = 0; u < n; ++u) {
      const float in = Sigmoid(a[u] + b[u]), forget = Sigmoid(a[n + u] + b[h + u]);
      const float made = Tanh(a[2 * n + u] + b[2 * h + u]), out = Sigmoid(a[3 * n + u] + b[3 * h + u]);
      const float c = forget * cell[u] + in * made;
      cell[u] = c;
      cells[u] = c;
      Store(gates + u, in);
      Store(gates + h + u, forget);
      Store(gates + 2 * h + u, made);
      Store(gates + 3 * h + u, out);
      const float v = out * Tanh(c);
      Store(y + u, v);
      Store(state + u, v);
    }
  }
}

MYCELIA_CLONES void RunForward(const Step<float>& s) { Forward(s); }
MYCELIA_CLONES void RunForward(const Step<BFloat16>& s) { Forward(s); }

// What one thread does in one step backward.
template <typename T>
struct Back {
  int64_t rows, units, size;
  const T* gates;                // gate g of row r at r * row * 4 * size + g * size
  const float* cells;            // row r at r * row * size
  const float* before;           // the cells before the step: row r at r * before_row
  const T* dy;                   // row r at r * row * size, or null
  const float* dstate;           // (rows, units): what the step after gave
  float* dcell;                  // (rows, units), updated
  T* dgates;                     // before their activations: as the gates
  T* compact;                    // the same: gate g of row r at r * 4 * size + g * size
  float* dbias;                  // gate g at g * size, added to
  int64_t row, before_row;
};

template <typename T, bool kGiven>
MYCELIA_INLINE void BackwardRow(const Back<T>& s, int64_t r) {
  const int64_t n = s.units, h = s.size;
  const T* g = s.gates + r * s.row * 4 * h;
  const float* c = s.cells + r * s.row * h;
  const float* before = s.before + r * s.before_row;
  const T* dy = kGiven ? s.dy + r * s.row * h : nullptr;
  const float* dstate = s.dstate + r * n;
  float* dcell = s.dcell + r * n;
  T* d = s.dgates + r * s.row * 4 * h;
  T* e = s.compact + r * 4 * h;
  float* db = s.dbias;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const float in = ToFloat(g[u]), forget = ToFloat(g[h + u]);
    const float made = ToFloat(g[2 * h + u]), out = ToFloat(g[3 * h + u]);
    const float t = Tanh(c[u]);
    const float dh = kGiven ? dstate[u] + ToFloat(dy[u]) : dstate[u];
    const float dc = dcell[u] + dh * out * (1.f - t * t);
    const float di = dc * made * in * (1.f - in), df = dc * before[u] * forget * (1.f - forget);
    const float dm = dc * in * (1.f - made * made), dout = dh * t * out * (1.f - out);
    dcell[u] = dc * forget;
    db[u] += di;
    db[h + u] += df;
    db[2 * h + u] += dm;
    db[3 * h + u] += dout;
    Store(d + u, di);
    Store(d + h + u, df);
    Store(d + 2 * h + u, dm);
    Store(d + 3 * h + u, dout);
    Store(e + u, di);
    Store(e + h + u, df);
    Store(e + 2 * h + u, dm);
    Store(e + 3 * h + u, dout);
  }
}

template <typename T>
MYCELIA_INLINE void Backward(const Back<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (s.dy == nullptr) {
      BackwardRow<T, false>(s, r);
    } else {
      BackwardRow<T, true>(s, r);
    }
  }
}

MYCELIA_CLONES void RunBackward(const Back<float>& s) { Backward(s); }
MYCELIA_CLONES void RunBackward(const Back<BFloat16>& s) { Backward(s); }

// Products -----------------------------------------------------------------------------------------------

// (m, k) by (k, n). Weights are packed as oneDNN wants them, unless `fixed` says how they are.
struct Product {
  dnnl::matmul primitive;
  Memory::desc a, b, c, bias, scratchpad;
};

struct Form {
  int64_t m, k, n;
  Type a, c;
  bool transposed = false;  // a is held as (k, m)
  bool packed = false;      // b is packed; else it is held as (k, n)
  bool bias = false;
  bool alone = false;       // run by one thread, beside others
  int64_t like = 0;         // the m of the product whose packed weights it takes, if that is another one
};

const Product& ProductOf(const Form& f, const Memory::desc* fixed = nullptr) {
  Key key("lstm");
  for (int64_t v : {f.m, f.k, f.n, static_cast<int64_t>(f.a), static_cast<int64_t>(f.c),
                    int64_t{f.transposed}, int64_t{f.packed}, int64_t{f.bias}, int64_t{f.alone},
                    f.like == 0 ? f.m : f.like}) {
    key.Add(v);
  }
  return Cached<Product>(key, [&] {
    Product p;
    p.a = Memory::desc({f.m, f.k}, f.a, f.transposed ? Dims{1, f.m} : Dims{f.k, 1});
    p.b = f.packed ? fixed != nullptr ? *fixed : Memory::desc({f.k, f.n}, f.a, Memory::format_tag::any)
                   : Memory::desc({f.k, f.n}, f.a, Dims{f.n, 1});
    p.c = Memory::desc({f.m, f.n}, f.c, Dims{f.n, 1});
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const int threads = omp_get_max_threads();
    if (f.alone) omp_set_num_threads(1);
    try {
      if (f.bias) p.bias = Memory::desc({1, f.n}, Type::f32, Dims{f.n, 1});
      const auto pd = f.bias ? dnnl::matmul::primitive_desc(Engine(), p.a, p.b, p.bias, p.c, attr)
                             : dnnl::matmul::primitive_desc(Engine(), p.a, p.b, p.c, attr);
      p.primitive = dnnl::matmul(pd);
      p.b = pd.weights_desc();
      p.scratchpad = pd.scratchpad_desc();
    } catch (...) {
      omp_set_num_threads(threads);
      throw;
    }
    omp_set_num_threads(threads);
    return p;
  });
}

void Multiply(const Product& p, dnnl::stream& stream, const void* a, const void* b, void* c, void* scratchpad,
              const void* bias = nullptr) {
  std::unordered_map<int, Memory> given{{DNNL_ARG_SRC, Memory(p.a, Engine(), const_cast<void*>(a))},
                                        {DNNL_ARG_WEIGHTS, Memory(p.b, Engine(), const_cast<void*>(b))},
                                        {DNNL_ARG_DST, Memory(p.c, Engine(), c)},
                                        {DNNL_ARG_SCRATCHPAD, Memory(p.scratchpad, Engine(), scratchpad)}};
  if (bias != nullptr) given[DNNL_ARG_BIAS] = Memory(p.bias, Engine(), const_cast<void*>(bias));
  p.primitive.execute(stream, given);
}

void Reorder(const Memory::desc& from, const void* a, const Memory::desc& to, void* b) {
  Memory x(from, Engine(), const_cast<void*>(a)), y(to, Engine(), b);
  dnnl::reorder(x, y).execute(Stream(), x, y);
}

// Layers -------------------------------------------------------------------------------------------------

// Pieces of a block of memory, each on a cache line of its own.
class Pieces {
 public:
  size_t Take(size_t bytes) {
    const size_t at = size_;
    size_ += (bytes + 63) / 64 * 64;
    return at;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

struct Layer {
  int64_t length, batch, features, size;
  bool batch_first, reverse;
  int64_t row_parts, unit_parts;  // how the sequences and the units are shared out

  Layer(const ffi::AnyBuffer& x, const ffi::AnyBuffer& h, bool first, bool backward)
      : batch_first(first), reverse(backward) {
    const Dims dims = DimsOf(x);
    length = dims[first ? 1 : 0];
    batch = dims[first ? 0 : 1];
    features = dims[2];
    size = DimsOf(h)[1];
    const int64_t threads = std::max(1, std::min(omp_get_max_threads(), omp_get_thread_limit()));
    row_parts = std::min(threads, std::max<int64_t>(1, batch / 8));
    // threads that share sequences wait for each other in every step, which has to be worth it
    const int64_t work = (batch / row_parts) * 4 * size * size >> 18;
    unit_parts = std::max<int64_t>(1, std::min({threads / row_parts, size / 32, work}));
  }
  int64_t rows() const { return length * batch; }
  int64_t Row(int64_t t, int64_t n) const { return batch_first ? n * length + t : t * batch + n; }
  int64_t row() const { return batch_first ? length : 1; }  // rows from one sequence to the next
  int64_t Time(int64_t step) const { return reverse ? length - 1 - step : step; }
  int64_t FirstRow(int64_t part) const { return batch * part / row_parts; }
  int64_t FirstUnit(int64_t part) const { return size * part / unit_parts; }
  int64_t MostRows() const { return (batch + row_parts - 1) / row_parts; }
  int64_t MostUnits() const { return (size + unit_parts - 1) / unit_parts; }

  // Runs `body(row part, unit part, step barrier)`, one thread for each pair of parts.
  template <typename Body>
  void Share(Body body) const {
    const int64_t parts = row_parts * unit_parts;
    const bool waiting = unit_parts > 1;
    std::string failed;
    auto barrier = [&] {
      if (waiting) {
#pragma omp barrier
      }
    };
#pragma omp parallel num_threads(static_cast<int>(parts))
    {
      const int64_t team = omp_get_num_threads();
      if (!waiting || team == parts) {
        for (int64_t part = omp_get_thread_num(); part < parts; part += team) {
          try {
            body(part / unit_parts, part % unit_parts, barrier);
          } catch (const std::exception& error) {
#pragma omp critical
            failed = error.what();
          }
        }
      } else {
#pragma omp critical
        failed = "fewer threads than asked for";
      }
    }
    if (!failed.empty()) throw std::runtime_error(failed);
  }
};

// The products of all parts in a step, and the packed weights of the unit parts.
struct StepProducts {
  std::vector<Product> products;  // of each row part and unit part
  std::vector<void*> weights;     // of each unit part
  size_t scratchpad = 0;
};

// A step's products are states by the transposed weights, or backward gradients of gates by the weights; `w` is
// (4 * size, size). Each unit part has the columns of its units, with those of all gates side by side if forward.
template <typename T>
StepProducts Pack(const Layer& layer, Type type, const T* w, bool forward) {
  const int64_t h = layer.size, k = forward ? h : 4 * h, most = layer.MostRows();
  auto form = [&](int64_t m, int64_t q) {
    const int64_t units = layer.FirstUnit(q + 1) - layer.FirstUnit(q);
    return Form{m, k, forward ? 4 * units : units, type, Type::f32, false, true, false, true, most};
  };
  StepProducts made;
  std::vector<Memory::desc> packed;
  std::vector<size_t> at;
  Pieces pieces;
  for (int64_t q = 0; q < layer.unit_parts; ++q) {
    packed.push_back(ProductOf(form(most, q)).b);
    at.push_back(pieces.Take(packed.back().get_size()));
  }
  const bool gather = forward && layer.unit_parts > 1;
  const size_t gathered = pieces.Take(gather ? 4 * layer.MostUnits() * h * sizeof(T) : 0);
  char* block = static_cast<char*>(Scratch(0, pieces.size()));
  for (int64_t q = 0; q < layer.unit_parts; ++q) {
    const int64_t u = layer.FirstUnit(q), n = layer.FirstUnit(q + 1) - u;
    const T* from = forward ? w : w + u;
    if (gather) {
      T* to = reinterpret_cast<T*>(block + gathered);
      for (int64_t g = 0; g < 4; ++g) std::memcpy(to + g * n * h, w + (g * h + u) * h, n * h * sizeof(T));
      from = to;
    }
    const Memory::desc given(Dims{k, forward ? 4 * n : n}, type, forward ? Dims{1, h} : Dims{h, 1});
    Reorder(given, from, packed[q], block + at[q]);
    made.weights.push_back(block + at[q]);
  }
  for (int64_t p = 0; p < layer.row_parts; ++p) {
    for (int64_t q = 0; q < layer.unit_parts; ++q) {
      made.products.push_back(ProductOf(form(layer.FirstRow(p + 1) - layer.FirstRow(p), q), &packed[q]));
      made.scratchpad = std::max(made.scratchpad, made.products.back().scratchpad.get_size());
    }
  }
  return made;
}

// A product over all steps, by all threads.
void MultiplyAll(const Form& form, const void* a, const Memory::desc& given_b, const void* b, void* c,
                 const void* bias = nullptr) {
  const Product& p = ProductOf(form);
  const void* weights = b;
  if (form.packed && !(given_b == p.b)) {
    void* packed = Scratch(3, p.b.get_size());
    Reorder(given_b, b, p.b, packed);
    weights = packed;
  }
  Multiply(p, Stream(), a, weights, c, Scratch(5, std::max<size_t>(64, p.scratchpad.get_size())), bias);
}

template <typename T>
void RunLayer(const Layer& layer, Type type, const T* x, const T* h0, const T* c0, const T* w_ih, const T* w_hh,
              const float* bias, T* y, T* h_last, T* c_last, T* gates, float* cells) {
  const int64_t h = layer.size, rows = layer.rows();
  float* from_input = reinterpret_cast<float*>(gates);
  if (gates == nullptr || type != Type::f32) from_input = static_cast<float*>(Scratch(1, rows * 4 * h * sizeof(float)));
  MultiplyAll({rows, layer.features, 4 * h, type, Type::f32, false, true, bias != nullptr, false}, x,
              Memory::desc({layer.features, 4 * h}, type, Dims{1, layer.features}), w_ih, from_input, bias);
  const StepProducts products = Pack(layer, type, w_hh, true);

  Pieces shared, own;  // what the unit parts of a row part share, and what a part has for itself
  const size_t state_bytes = layer.MostRows() * h * sizeof(T);
  const size_t states[2] = {shared.Take(state_bytes), shared.Take(state_bytes)};
  const int64_t part_units = layer.MostRows() * layer.MostUnits();
  const size_t sums = own.Take(4 * part_units * sizeof(float)), cell_at = own.Take(part_units * sizeof(float));
  const size_t scratchpad = own.Take(products.scratchpad);
  char* block = static_cast<char*>(
      Scratch(2, layer.row_parts * shared.size() + layer.row_parts * layer.unit_parts * own.size()));

  layer.Share([&](int64_t p, int64_t q, auto& barrier) {
    const int64_t first = layer.FirstRow(p), m = layer.FirstRow(p + 1) - first;
    const int64_t u = layer.FirstUnit(q), n = layer.FirstUnit(q + 1) - u;
    char* together = block + p * shared.size();
    char* mine = block + layer.row_parts * shared.size() + (p * layer.unit_parts + q) * own.size();
    float* cell = reinterpret_cast<float*>(mine + cell_at);
    T* state = reinterpret_cast<T*>(together + states[0]);
    for (int64_t r = 0; r < m; ++r) {
      std::memcpy(state + r * h + u, h0 + (first + r) * h + u, n * sizeof(T));
      for (int64_t i = 0; i < n; ++i) cell[r * n + i] = ToFloat(c0[(first + r) * h + u + i]);
    }
    barrier();
    dnnl::stream stream(Engine());
    const Product& product = products.products[p * layer.unit_parts + q];
    for (int64_t step = 0; step < layer.length; ++step) {
      const int64_t row = layer.Row(layer.Time(step), first);
      Multiply(product, stream, together + states[step % 2], products.weights[q], mine + sums, mine + scratchpad);
      Step<T> s;
      s.rows = m;
      s.units = n;
      s.size = h;
      s.row = layer.row();
      s.from_state = reinterpret_cast<float*>(mine + sums);
      s.from_input = from_input + row * 4 * h + u;
      s.gates = gates == nullptr ? nullptr : gates + row * 4 * h + u;
      s.cells = cells == nullptr ? nullptr : cells + row * h + u;
      s.cell = cell;
      s.y = y + row * h + u;
      s.state = reinterpret_cast<T*>(together + states[(step + 1) % 2]) + u;
      RunForward(s);
      barrier();
    }
    state = reinterpret_cast<T*>(together + states[layer.length % 2]);
    for (int64_t r = 0; r < m; ++r) {
      std::memcpy(h_last + (first + r) * h + u, state + r * h + u, n * sizeof(T));
      for (int64_t i = 0; i < n; ++i) Store(c_last + (first + r) * h + u + i, cell[r * n + i]);
    }
  });
}

template <typename T>
struct Gradients {
  const T *x, *h0, *c0, *w_ih, *w_hh, *y, *gates;
  const float* cells;
  const T *dy, *dh, *dc;                              // cotangents, null where there are none
  T *dx, *dh0, *dc0, *dw_ih, *dw_hh, *dbias;          // dx and dbias null where they are not wanted
};

template <typename T>
void RunGradients(const Layer& layer, Type type, const Gradients<T>& g) {
  const int64_t h = layer.size, rows = layer.rows();
  const StepProducts products = Pack(layer, type, g.w_hh, false);
  T* dgates = static_cast<T*>(Scratch(1, rows * 4 * h * sizeof(T)));
  T* states = static_cast<T*>(Scratch(4, rows * h * sizeof(T)));  // before each step

  Pieces shared, own;
  const size_t step_bytes = layer.MostRows() * 4 * h * sizeof(T);
  const size_t compact[2] = {shared.Take(step_bytes), shared.Take(step_bytes)};
  const size_t bias_at = shared.Take(4 * h * sizeof(float));
  const size_t part_bytes = layer.MostRows() * layer.MostUnits() * sizeof(float);
  const size_t dstate_at = own.Take(part_bytes), dcell_at = own.Take(part_bytes), first_at = own.Take(part_bytes);
  const size_t scratchpad = own.Take(products.scratchpad);
  char* block = static_cast<char*>(
      Scratch(2, layer.row_parts * shared.size() + layer.row_parts * layer.unit_parts * own.size()));

  layer.Share([&](int64_t p, int64_t q, auto& barrier) {
    const int64_t first = layer.FirstRow(p), m = layer.FirstRow(p + 1) - first;
    const int64_t u = layer.FirstUnit(q), n = layer.FirstUnit(q + 1) - u;
    char* together = block + p * shared.size();
    char* mine = block + layer.row_parts * shared.size() + (p * layer.unit_parts + q) * own.size();
    float* dstate = reinterpret_cast<float*>(mine + dstate_at);
    float* dcell = reinterpret_cast<float*>(mine + dcell_at);
    float* first_cell = reinterpret_cast<float*>(mine + first_at);
    float* dbias = reinterpret_cast<float*>(together + bias_at);
    for (int64_t k = 0; k < 4; ++k) std::fill_n(dbias + k * h + u, n, 0.f);
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (first + r) * h + u + i;
        dstate[r * n + i] = g.dh == nullptr ? 0.f : ToFloat(g.dh[at]);
        dcell[r * n + i] = g.dc == nullptr ? 0.f : ToFloat(g.dc[at]);
        first_cell[r * n + i] = ToFloat(g.c0[at]);
      }
    }
    dnnl::stream stream(Engine());
    const Product& product = products.products[p * layer.unit_parts + q];
    for (int64_t step = layer.length; step-- > 0;) {
      const int64_t row = layer.Row(layer.Time(step), first);
      const int64_t before = step == 0 ? 0 : layer.Row(layer.Time(step - 1), first);
      for (int64_t r = 0; r < m; ++r) {
        const T* state = step == 0 ? g.h0 + (first + r) * h : g.y + (before + r * layer.row()) * h;
        std::memcpy(states + (row + r * layer.row()) * h + u, state + u, n * sizeof(T));
      }
      Back<T> s;
      s.rows = m;
      s.units = n;
      s.size = h;
      s.row = layer.row();
      s.gates = g.gates + row * 4 * h + u;
      s.cells = g.cells + row * h + u;
      s.before = step == 0 ? first_cell : g.cells + before * h + u;
      s.before_row = step == 0 ? n : layer.row() * h;
      s.dy = g.dy == nullptr ? nullptr : g.dy + row * h + u;
      s.dstate = dstate;
      s.dcell = dcell;
      s.dgates = dgates + row * 4 * h + u;
      s.compact = reinterpret_cast<T*>(together + compact[step % 2]) + u;
      s.dbias = dbias + u;
      RunBackward(s);
      barrier();
      Multiply(product, stream, together + compact[step % 2], products.weights[q], dstate, mine + scratchpad);
    }
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (first + r) * h + u + i;
        Store(g.dh0 + at, dstate[r * n + i]);
        Store(g.dc0 + at, dcell[r * n + i]);
      }
    }
  });

  if (g.dbias != nullptr) {
    for (int64_t i = 0; i < 4 * h; ++i) {
      float sum = 0;
      for (int64_t p = 0; p < layer.row_parts; ++p) {
        sum += reinterpret_cast<const float*>(block + p * shared.size() + bias_at)[i];
      }
      Store(g.dbias + i, sum);
    }
  }
  const Memory::desc none;
  MultiplyAll({4 * h, rows, layer.features, type, type, true}, dgates, none, g.x, g.dw_ih);
  MultiplyAll({4 * h, rows, h, type, type, true}, dgates, none, states, g.dw_hh);
  if (g.dx != nullptr) MultiplyAll({rows, 4 * h, layer.features, type, type}, dgates, none, g.w_ih, g.dx);
}

// Calls --------------------------------------------------------------------------------------------------

template <typename T>
T* In(ffi::RemainingArgs& args, size_t i) {
  return static_cast<T*>(args.get<ffi::AnyBuffer>(i).value().untyped_data());
}

template <typename T>
T* Out(ffi::RemainingRets& rets, size_t i) {
  return static_cast<T*>((*rets.get<ffi::AnyBuffer>(i).value()).untyped_data());
}

template <typename T>
void CallLayer(const Layer& layer, Type type, ffi::RemainingArgs& args, ffi::RemainingRets& rets) {
  const bool keep = rets.size() > 3;
  RunLayer<T>(layer, type, In<T>(args, 0), In<T>(args, 1), In<T>(args, 2), In<T>(args, 3), In<T>(args, 4),
              args.size() > 5 ? In<float>(args, 5) : nullptr, Out<T>(rets, 0), Out<T>(rets, 1), Out<T>(rets, 2),
              keep ? Out<T>(rets, 3) : nullptr, keep ? Out<float>(rets, 4) : nullptr);
}

template <typename T>
void CallGradients(const Layer& layer, Type type, ffi::RemainingArgs& args, ffi::RemainingRets& rets,
                   ffi::Span<const int64_t> flags) {
  Gradients<T> g{};
  g.x = In<T>(args, 0);
  g.h0 = In<T>(args, 1);
  g.c0 = In<T>(args, 2);
  g.w_ih = In<T>(args, 3);
  g.w_hh = In<T>(args, 4);
  g.y = In<T>(args, 5);
  g.gates = In<T>(args, 6);
  g.cells = In<float>(args, 7);
  size_t next = 8;
  if (flags[2]) g.dy = In<T>(args, next++);
  if (flags[3]) g.dh = In<T>(args, next++);
  if (flags[4]) g.dc = In<T>(args, next++);
  next = 0;
  if (flags[5]) g.dx = Out<T>(rets, next++);
  g.dh0 = Out<T>(rets, next++);
  g.dc0 = Out<T>(rets, next++);
  g.dw_ih = Out<T>(rets, next++);
  g.dw_hh = Out<T>(rets, next++);
  if (flags[6]) g.dbias = Out<T>(rets, next++);
  RunGradients(layer, type, g);
}

ffi::Error LstmLayer(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> flags) {
  return Guarded([&] {
    if (args.size() < 5 || (rets.size() != 3 && rets.size() != 5) || flags.size() != 2) {
      throw std::invalid_argument("malformed call of an LSTM layer");
    }
    const ffi::AnyBuffer x = args.get<ffi::AnyBuffer>(0).value();
    const Layer layer(x, args.get<ffi::AnyBuffer>(1).value(), flags[0] != 0, flags[1] != 0);
    if (x.element_type() == ffi::DataType::F32) {
      CallLayer<float>(layer, Type::f32, args, rets);
    } else {
      CallLayer<BFloat16>(layer, Type::bf16, args, rets);
    }
  });
}

ffi::Error LstmLayerGrad(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> flags) {
  return Guarded([&] {
    if (flags.size() != 7 || static_cast<int64_t>(args.size()) != 8 + flags[2] + flags[3] + flags[4] ||
        static_cast<int64_t>(rets.size()) != 4 + flags[5] + flags[6]) {
      throw std::invalid_argument("malformed call of the gradients of an LSTM layer");
    }
    const ffi::AnyBuffer x = args.get<ffi::AnyBuffer>(0).value();
    const Layer layer(x, args.get<ffi::AnyBuffer>(1).value(), flags[0] != 0, flags[1] != 0);
    if (x.element_type() == ffi::DataType::F32) {
      CallGradients<float>(layer, Type::f32, args, rets, flags);
    } else {
      CallGradients<BFloat16>(layer, Type::bf16, args, rets, flags);
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_lstm_layer, mycelia::LstmLayer,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>("flags"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_lstm_layer_grad, mycelia::LstmLayerGrad,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>("flags"));
