// A layer of a long short-term memory over a sequence, and its gradients (Hochreiter and Schmidhuber, 1997); see
// recurrent.h.
//
// Gates are in the order input, forget, candidate, output. Attributes of both, `flags`: whether the batch is the first
// axis, whether steps go from the last to the first. Of the gradients then: whether cotangents of the outputs, of the
// last state and of the last cell are given, whether the gradient of the input and that of a bias are wanted.
#include "recurrent.h"

namespace mycelia {
namespace {

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

template <typename T, bool kKept>
MYCELIA_INLINE void ForwardRow(const Step<T>& s, int64_t r) {
  const int64_t n = s.units, h = s.size;
  const float* a = s.from_state + r * 4 * n;
  const float* b = s.from_input + r * s.row * 4 * h;
  float* cell = s.cell + r * n;
  T* y = s.y + r * s.row * h;
  T* state = s.state + r * h;
  T* gates = kKept ? s.gates + r * s.row * 4 * h : nullptr;
  float* cells = kKept ? s.cells + r * s.row * h : nullptr;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const float in = Sigmoid(a[u] + b[u]), forget = Sigmoid(a[n + u] + b[h + u]);
    const float made = Tanh(a[2 * n + u] + b[2 * h + u]), out = Sigmoid(a[3 * n + u] + b[3 * h + u]);
    const float c = forget * cell[u] + in * made;
    cell[u] = c;
    if (kKept) {
      cells[u] = c;
      Store(gates + u, in);
      Store(gates + h + u, forget);
      Store(gates + 2 * h + u, made);
      Store(gates + 3 * h + u, out);
    }
    const float v = out * Tanh(c);
    Store(y + u, v);
    Store(state + u, v);
  }
}

template <typename T>
MYCELIA_INLINE void Forward(const Step<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (s.gates == nullptr) {
      ForwardRow<T, false>(s, r);
    } else {
      ForwardRow<T, true>(s, r);
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

// Layers -------------------------------------------------------------------------------------------------

template <typename T>
void RunLayer(const Layer& layer, Type type, const T* x, const T* h0, const T* c0, const T* w_ih, const T* w_hh,
              const float* bias, T* y, T* h_last, T* c_last, T* gates, float* cells) {
  const int64_t h = layer.size;
  float* place = type == Type::f32 ? reinterpret_cast<float*>(gates) : nullptr;
  const float* from_input = FromInput(layer, type, x, w_ih, bias, place);
  auto begin = [&](const Part& part, float* cell) {
    for (int64_t r = 0; r < part.rows; ++r) {
      const T* from = c0 + (part.first + r) * h + part.unit;
      for (int64_t i = 0; i < part.units; ++i) cell[r * part.units + i] = ToFloat(from[i]);
    }
  };
  auto step = [&](const Part& part, float* cell, int64_t row, const float* sums, const T*, T* after) {
    const int64_t u = part.unit;
    Step<T> s;
    s.rows = part.rows;
    s.units = part.units;
    s.size = h;
    s.row = layer.row();
    s.from_state = sums;
    s.from_input = from_input + row * 4 * h + u;
    s.gates = gates == nullptr ? nullptr : gates + row * 4 * h + u;
    s.cells = cells == nullptr ? nullptr : cells + row * h + u;
    s.cell = cell;
    s.y = y + row * h + u;
    s.state = after;
    RunForward(s);
  };
  auto end = [&](const Part& part, const float* cell) {
    for (int64_t r = 0; r < part.rows; ++r) {
      T* to = c_last + (part.first + r) * h + part.unit;
      for (int64_t i = 0; i < part.units; ++i) Store(to + i, cell[r * part.units + i]);
    }
  };
  ForwardSteps(layer, type, w_hh, h0, h_last, true, begin, step, end);
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
  T* dgates = static_cast<T*>(Scratch(1, rows * 4 * h * sizeof(T)));
  T* states = static_cast<T*>(Scratch(4, rows * h * sizeof(T)));  // before each step
  std::vector<float> dbias(4 * h);
  // of the two extra pieces the first is the gradient of the cells, the second the first cells
  auto begin = [&](const Part& part, float* dcell) {
    float* first_cell = dcell + part.rows * part.units;
    for (int64_t r = 0; r < part.rows; ++r) {
      for (int64_t i = 0; i < part.units; ++i) {
        const int64_t at = (part.first + r) * h + part.unit + i;
        dcell[r * part.units + i] = g.dc == nullptr ? 0.f : ToFloat(g.dc[at]);
        first_cell[r * part.units + i] = ToFloat(g.c0[at]);
      }
    }
  };
  auto step = [&](const Part& part, const BackStep<T>& b) {
    const int64_t u = part.unit;
    Back<T> s;
    s.rows = part.rows;
    s.units = part.units;
    s.size = h;
    s.row = layer.row();
    s.gates = g.gates + b.row * 4 * h + u;
    s.cells = g.cells + b.row * h + u;
    s.before = b.first ? b.extra + part.rows * part.units : g.cells + b.before_row * h + u;
    s.before_row = b.first ? part.units : layer.row() * h;
    s.dy = g.dy == nullptr ? nullptr : g.dy + b.row * h + u;
    s.dstate = b.dstate;
    s.dcell = b.extra;
    s.dgates = dgates + b.row * 4 * h + u;
    s.compact = b.compact;
    s.dbias = b.dbias;
    RunBackward(s);
  };
  auto end = [&](const Part& part, const float* dstate, const float* dcell) {
    for (int64_t r = 0; r < part.rows; ++r) {
      for (int64_t i = 0; i < part.units; ++i) {
        const int64_t at = (part.first + r) * h + part.unit + i;
        Store(g.dh0 + at, dstate[r * part.units + i]);
        Store(g.dc0 + at, dcell[r * part.units + i]);
      }
    }
  };
  BackwardSteps(layer, type, g.w_hh, g.h0, g.y, g.dh, 4, states, dbias.data(), begin, step, end);
  if (g.dbias != nullptr) {
    for (int64_t i = 0; i < 4 * h; ++i) Store(g.dbias + i, dbias[i]);
  }
  InputGradients(layer, type, dgates, g.x, g.w_ih, g.dx, g.dw_ih);
  StateGradients(layer, type, dgates, states, g.dw_hh);
}

// Calls --------------------------------------------------------------------------------------------------

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
    const Layer layer(x, args.get<ffi::AnyBuffer>(1).value(), 4, flags[0] != 0, flags[1] != 0);
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
    const Layer layer(x, args.get<ffi::AnyBuffer>(1).value(), 4, flags[0] != 0, flags[1] != 0);
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
