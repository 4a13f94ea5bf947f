// What kernels of recurrent layers share: activations, packed products, and how sequences and units are shared out.
//
// What the inputs contribute to the gates is one product over all steps. Then each thread takes some sequences, and if
// there are more threads than that some units of the state, through all steps: it multiplies the last state by the
// packed weights and runs one loop that makes activations and state. Backwards likewise, from the last step to the
// first; the gradients of the weights and of the input are products over all steps again. Sums are in float32.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "../vectorized.h"
#include "onednn.h"

namespace mycelia {

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

inline const Product& ProductOf(const Form& f, const Memory::desc* fixed = nullptr) {
  Key key("recurrent");
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

inline void Multiply(const Product& p, dnnl::stream& stream, const void* a, const void* b, void* c, void* scratchpad,
              const void* bias = nullptr) {
  std::unordered_map<int, Memory> given{{DNNL_ARG_SRC, Memory(p.a, Engine(), const_cast<void*>(a))},
                                        {DNNL_ARG_WEIGHTS, Memory(p.b, Engine(), const_cast<void*>(b))},
                                        {DNNL_ARG_DST, Memory(p.c, Engine(), c)},
                                        {DNNL_ARG_SCRATCHPAD, Memory(p.scratchpad, Engine(), scratchpad)}};
  if (bias != nullptr) given[DNNL_ARG_BIAS] = Memory(p.bias, Engine(), const_cast<void*>(bias));
  p.primitive.execute(stream, given);
}

inline void Reorder(const Memory::desc& from, const void* a, const Memory::desc& to, void* b) {
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
  int64_t gates;  // products for each unit of the state
  bool batch_first, reverse;
  int64_t row_parts, unit_parts;  // how the sequences and the units are shared out

  Layer(const ffi::AnyBuffer& x, const ffi::AnyBuffer& h, int64_t count, bool first, bool backward)
      : gates(count), batch_first(first), reverse(backward) {
    const Dims dims = DimsOf(x);
    length = dims[first ? 1 : 0];
    batch = dims[first ? 0 : 1];
    features = dims[2];
    size = DimsOf(h)[1];
    const int64_t threads = std::max(1, std::min(omp_get_max_threads(), omp_get_thread_limit()));
    row_parts = std::min(threads, std::max<int64_t>(1, batch / 8));
    // threads that share sequences wait for each other in every step, which has to be worth it
    const int64_t work = (batch / row_parts) * gates * size * size >> 18;
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
// (gates * size, size). Each unit part has the columns of its units, with those of all gates side by side if forward.
template <typename T>
StepProducts Pack(const Layer& layer, Type type, const T* w, bool forward) {
  const int64_t h = layer.size, gates = layer.gates, k = forward ? h : gates * h, most = layer.MostRows();
  auto form = [&](int64_t m, int64_t q) {
    const int64_t units = layer.FirstUnit(q + 1) - layer.FirstUnit(q);
    return Form{m, k, forward ? gates * units : units, type, Type::f32, false, true, false, true, most};
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
  const size_t gathered = pieces.Take(gather ? gates * layer.MostUnits() * h * sizeof(T) : 0);
  char* block = static_cast<char*>(Scratch(0, pieces.size()));
  for (int64_t q = 0; q < layer.unit_parts; ++q) {
    const int64_t u = layer.FirstUnit(q), n = layer.FirstUnit(q + 1) - u;
    const T* from = forward ? w : w + u;
    if (gather) {
      T* to = reinterpret_cast<T*>(block + gathered);
      for (int64_t g = 0; g < gates; ++g) std::memcpy(to + g * n * h, w + (g * h + u) * h, n * h * sizeof(T));
      from = to;
    }
    const Memory::desc given(Dims{k, forward ? gates * n : n}, type, forward ? Dims{1, h} : Dims{h, 1});
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
inline void MultiplyAll(const Form& form, const void* a, const Memory::desc& given_b, const void* b, void* c,
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

// Steps --------------------------------------------------------------------------------------------------

// What one thread takes through all steps: sequences `first` to `first + rows`, units `unit` to `unit + units`.
struct Part {
  int64_t first, rows, unit, units;
  char* own;       // memory of its own
  char* together;  // memory that it shares with the other units of its sequences
};

// The memory of all parts.
struct PartMemory {
  size_t shared, own;
  char* block;

  PartMemory(const Layer& layer, const Pieces& shared_pieces, const Pieces& own_pieces)
      : shared(shared_pieces.size()), own(own_pieces.size()) {
    block = static_cast<char*>(Scratch(2, layer.row_parts * shared + layer.row_parts * layer.unit_parts * own));
  }
  char* Together(int64_t p) const { return block + p * shared; }
  Part Of(const Layer& layer, int64_t p, int64_t q) const {
    const int64_t first = layer.FirstRow(p), unit = layer.FirstUnit(q);
    return {first, layer.FirstRow(p + 1) - first, unit, layer.FirstUnit(q + 1) - unit,
            block + layer.row_parts * shared + (p * layer.unit_parts + q) * own, Together(p)};
  }
};

// What the inputs contribute to the gates of all steps, in `place` if that is given.
template <typename T>
const float* FromInput(const Layer& layer, Type type, const T* x, const T* w_ih, const float* bias, float* place) {
  const int64_t n = layer.gates * layer.size;
  float* made = place != nullptr ? place : static_cast<float*>(Scratch(1, layer.rows() * n * sizeof(float)));
  MultiplyAll({layer.rows(), layer.features, n, type, Type::f32, false, true, bias != nullptr, false}, x,
              Memory::desc({layer.features, n}, type, Dims{1, layer.features}), w_ih, made, bias);
  return made;
}

// From the first states to the last. `begin(part, extra)` is called before the first step, `end` after the last, with
// `extra` floats for each pair of sequence and unit; `step(part, extra, row, sums, before, after)` has the products
// (rows, gates * units), and the states (rows, size) from the part's first unit on.
template <typename T, typename Begin, typename Step, typename End>
void ForwardSteps(const Layer& layer, Type type, const T* w_hh, const T* h0, T* h_last, bool extra, Begin begin,
                  Step step, End end) {
  const int64_t h = layer.size;
  const StepProducts products = Pack(layer, type, w_hh, true);
  Pieces shared, own;
  const size_t state_bytes = layer.MostRows() * h * sizeof(T);
  const size_t states[2] = {shared.Take(state_bytes), shared.Take(state_bytes)};
  const size_t part_bytes = layer.MostRows() * layer.MostUnits() * sizeof(float);
  const size_t sums_at = own.Take(layer.gates * part_bytes), extra_at = own.Take(extra ? part_bytes : 0);
  const size_t scratchpad = own.Take(products.scratchpad);
  const PartMemory memory(layer, shared, own);

  layer.Share([&](int64_t p, int64_t q, auto& barrier) {
    const Part part = memory.Of(layer, p, q);
    auto state = [&](int64_t i) { return reinterpret_cast<T*>(part.together + states[i % 2]); };
    float* sums = reinterpret_cast<float*>(part.own + sums_at);
    float* kept = reinterpret_cast<float*>(part.own + extra_at);
    const size_t bytes = part.units * sizeof(T);
    for (int64_t r = 0; r < part.rows; ++r) {
      std::memcpy(state(0) + r * h + part.unit, h0 + (part.first + r) * h + part.unit, bytes);
    }
    begin(part, kept);
    barrier();
    dnnl::stream stream(Engine());
    const Product& product = products.products[p * layer.unit_parts + q];
    for (int64_t i = 0; i < layer.length; ++i) {
      Multiply(product, stream, state(i), products.weights[q], sums, part.own + scratchpad);
      step(part, kept, layer.Row(layer.Time(i), part.first), sums, state(i) + part.unit, state(i + 1) + part.unit);
      barrier();
    }
    for (int64_t r = 0; r < part.rows; ++r) {
      std::memcpy(h_last + (part.first + r) * h + part.unit, state(layer.length) + r * h + part.unit, bytes);
    }
    end(part, kept);
  });
}

// What a step backward is given.
template <typename T>
struct BackStep {
  bool first;               // whether it is the first step of the sequences
  int64_t row, before_row;  // rows of this step and of that before it, of the part's first sequence
  const float* dstate;      // what the step after gave: (rows, units)
  float* extra;
  T* compact;               // the gates' gradients, to be multiplied: (rows, gates * size), from the first unit on
  float* dbias;             // the sums of the part's units: gate g at g * size
  const T* before;          // the states before the step, from the part's first unit on
};

// From the last step to the first. The states before each step are put into `states` (rows, size). `begin(part, extra)`
// and `end(part, dstate, extra)` as above, with two pieces of extra floats, each (rows, units). The sums for the
// `biases` go to `dbias`.
template <typename T, typename Begin, typename Step, typename End>
void BackwardSteps(const Layer& layer, Type type, const T* w_hh, const T* h0, const T* y, const T* dh, int64_t biases,
                   T* states, float* dbias, Begin begin, Step step, End end) {
  const int64_t h = layer.size;
  const StepProducts products = Pack(layer, type, w_hh, false);
  Pieces shared, own;
  const size_t step_bytes = layer.MostRows() * layer.gates * h * sizeof(T);
  const size_t compact[2] = {shared.Take(step_bytes), shared.Take(step_bytes)};
  const size_t bias_at = shared.Take(biases * h * sizeof(float));
  const size_t part_floats = layer.MostRows() * layer.MostUnits();
  const size_t dstate_at = own.Take(part_floats * sizeof(float)), extra_at = own.Take(2 * part_floats * sizeof(float));
  const size_t scratchpad = own.Take(products.scratchpad);
  const PartMemory memory(layer, shared, own);

  layer.Share([&](int64_t p, int64_t q, auto& barrier) {
    const Part part = memory.Of(layer, p, q);
    const int64_t u = part.unit, n = part.units;
    float* dstate = reinterpret_cast<float*>(part.own + dstate_at);
    float* extra = reinterpret_cast<float*>(part.own + extra_at);
    float* sums = reinterpret_cast<float*>(part.together + bias_at) + u;
    for (int64_t k = 0; k < biases; ++k) std::fill_n(sums + k * h, n, 0.f);
    for (int64_t r = 0; r < part.rows; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        dstate[r * n + i] = dh == nullptr ? 0.f : ToFloat(dh[(part.first + r) * h + u + i]);
      }
    }
    begin(part, extra);
    dnnl::stream stream(Engine());
    const Product& product = products.products[p * layer.unit_parts + q];
    for (int64_t i = layer.length; i-- > 0;) {
      const int64_t row = layer.Row(layer.Time(i), part.first);
      const int64_t before = i == 0 ? 0 : layer.Row(layer.Time(i - 1), part.first);
      for (int64_t r = 0; r < part.rows; ++r) {
        const T* state = i == 0 ? h0 + (part.first + r) * h : y + (before + r * layer.row()) * h;
        std::memcpy(states + (row + r * layer.row()) * h + u, state + u, n * sizeof(T));
      }
      T* gates = reinterpret_cast<T*>(part.together + compact[i % 2]);
      step(part, BackStep<T>{i == 0, row, before, dstate, extra, gates + u, sums, states + row * h + u});
      barrier();
      Multiply(product, stream, gates, products.weights[q], dstate, part.own + scratchpad);
    }
    end(part, dstate, extra);
  });
  std::fill_n(dbias, biases * h, 0.f);
  for (int64_t p = 0; p < layer.row_parts; ++p) {
    const float* sums = reinterpret_cast<const float*>(memory.Together(p) + bias_at);
    for (int64_t i = 0; i < biases * h; ++i) dbias[i] += sums[i];
  }
}

// The gradients of the input and of the weights, from those of all gates (rows, gates * size).
template <typename T>
void InputGradients(const Layer& layer, Type type, const T* dgates, const T* x, const T* w_ih, T* dx, T* dw_ih) {
  const int64_t n = layer.gates * layer.size, rows = layer.rows();
  MultiplyAll({n, rows, layer.features, type, type, true}, dgates, Memory::desc(), x, dw_ih);
  if (dx != nullptr) MultiplyAll({rows, n, layer.features, type, type}, dgates, Memory::desc(), w_ih, dx);
}

template <typename T>
void StateGradients(const Layer& layer, Type type, const T* dgates, const T* states, T* dw_hh) {
  MultiplyAll({layer.gates * layer.size, layer.rows(), layer.size, type, type, true}, dgates, Memory::desc(), states,
              dw_hh);
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

}  // namespace mycelia
