// A layer of gated recurrent units (K. Cho et al., 2014) or of an Elman network (1990) over a sequence, and its
// gradients; see recurrent.h.
//
// Gates of a GRU are in the order reset, update, candidate; what the state contributes to the candidate is kept too,
// since the reset gate multiplies it. Attributes, `flags`: the kind (0 GRU, 1 tanh, 2 relu), whether the batch is the
// first axis, whether steps go from the last to the first. Of the gradients then: whether cotangents of the outputs and
// of the last state are given, whether the gradient of the input and those of biases are wanted.
#include "recurrent.h"

namespace mycelia {
namespace {

enum Kind { kGru = 0, kTanh = 1, kRelu = 2 };

// Steps of a GRU -----------------------------------------------------------------------------------------

// What one thread does in one step forward: `rows` sequences, `units` units of states of `size`.
template <typename T>
struct GruStep {
  int64_t rows, units, size, row;
  const float* from_state;  // (rows, 3 * units)
  const float* from_input;  // gate g of row r at r * row * 3 * size + g * size
  const float* bias;        // of what the state contributes to the candidate, or null
  T* gates;                 // as from_input, or null
  float* part;              // what the state contributed to the candidate: row r at r * row * size, or null
  const T* before;          // row r at r * size
  T* y;                     // row r at r * row * size
  T* state;                 // row r at r * size
};

template <typename T, bool kKept, bool kBias>
MYCELIA_INLINE void GruRow(const GruStep<T>& s, int64_t r) {
  const int64_t n = s.units, h = s.size;
  const float* a = s.from_state + r * 3 * n;
  const float* b = s.from_input + r * s.row * 3 * h;
  const float* bias = s.bias;
  const T* before = s.before + r * h;
  T* y = s.y + r * s.row * h;
  T* state = s.state + r * h;
  T* gates = kKept ? s.gates + r * s.row * 3 * h : nullptr;
  float* part = kKept ? s.part + r * s.row * h : nullptr;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const float reset = Sigmoid(a[u] + b[u]), update = Sigmoid(a[n + u] + b[h + u]);
    const float p = kBias ? a[2 * n + u] + bias[u] : a[2 * n + u];
    const float made = Tanh(b[2 * h + u] + reset * p);
    if (kKept) {
      part[u] = p;
      Store(gates + u, reset);
      Store(gates + h + u, update);
      Store(gates + 2 * h + u, made);
    }
    const float v = made + update * (ToFloat(before[u]) - made);
    Store(y + u, v);
    Store(state + u, v);
  }
}

template <typename T>
MYCELIA_INLINE void GruForward(const GruStep<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (s.gates != nullptr) {
      s.bias != nullptr ? GruRow<T, true, true>(s, r) : GruRow<T, true, false>(s, r);
    } else {
      s.bias != nullptr ? GruRow<T, false, true>(s, r) : GruRow<T, false, false>(s, r);
    }
  }
}

MYCELIA_CLONES void RunGru(const GruStep<float>& s) { GruForward(s); }
MYCELIA_CLONES void RunGru(const GruStep<BFloat16>& s) { GruForward(s); }

// What one thread does in one step backward.
template <typename T>
struct GruBack {
  int64_t rows, units, size, row;
  const T* gates;       // gate g of row r at r * row * 3 * size + g * size
  const float* part;    // row r at r * row * size
  const T* before;      // likewise
  const T* dy;          // likewise, or null
  const float* dstate;  // (rows, units): what the gates of the step after gave
  float* direct;        // (rows, units): what its state gave, updated
  T* dinput;            // of what the input contributes to the gates: as the gates
  T* dgates;            // of what the state contributes: as the gates
  T* compact;           // the same: gate g of row r at r * 3 * size + g * size
  float* dbias;         // gate g at g * size, that of the state's part of the candidate at 3 * size; added to
};

template <typename T, bool kGiven>
MYCELIA_INLINE void GruBackRow(const GruBack<T>& s, int64_t r) {
  const int64_t n = s.units, h = s.size;
  const T* g = s.gates + r * s.row * 3 * h;
  const float* part = s.part + r * s.row * h;
  const T* before = s.before + r * s.row * h;
  const T* dy = kGiven ? s.dy + r * s.row * h : nullptr;
  const float* dstate = s.dstate + r * n;
  float* direct = s.direct + r * n;
  T* d = s.dinput + r * s.row * 3 * h;
  T* e = s.dgates + r * s.row * 3 * h;
  T* c = s.compact + r * 3 * h;
  float* db = s.dbias;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const float reset = ToFloat(g[u]), update = ToFloat(g[h + u]), made = ToFloat(g[2 * h + u]);
    float dh = dstate[u] + direct[u];
    if (kGiven) dh += ToFloat(dy[u]);
    direct[u] = dh * update;
    const float dz = dh * (ToFloat(before[u]) - made) * update * (1.f - update);
    const float dm = dh * (1.f - update) * (1.f - made * made);
    const float dr = dm * part[u] * reset * (1.f - reset), dp = dm * reset;
    db[u] += dr;
    db[h + u] += dz;
    db[2 * h + u] += dm;
    db[3 * h + u] += dp;
    Store(d + u, dr);
    Store(d + h + u, dz);
    Store(d + 2 * h + u, dm);
    Store(e + u, dr);
    Store(e + h + u, dz);
    Store(e + 2 * h + u, dp);
    Store(c + u, dr);
    Store(c + h + u, dz);
    Store(c + 2 * h + u, dp);
  }
}

template <typename T>
MYCELIA_INLINE void GruBackward(const GruBack<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    s.dy == nullptr ? GruBackRow<T, false>(s, r) : GruBackRow<T, true>(s, r);
  }
}

MYCELIA_CLONES void RunGruBack(const GruBack<float>& s) { GruBackward(s); }
MYCELIA_CLONES void RunGruBack(const GruBack<BFloat16>& s) { GruBackward(s); }

// Steps of an Elman network ------------------------------------------------------------------------------

template <typename T>
struct PlainStep {
  int64_t rows, units, size, row;
  bool relu;
  const float* from_state;  // (rows, units)
  const float* from_input;  // row r at r * row * size
  T* y;                     // likewise
  T* state;                 // row r at r * size
};

template <typename T, bool kReluHere>
MYCELIA_INLINE void PlainRow(const PlainStep<T>& s, int64_t r) {
  const float* a = s.from_state + r * s.units;
  const float* b = s.from_input + r * s.row * s.size;
  T* y = s.y + r * s.row * s.size;
  T* state = s.state + r * s.size;
#pragma omp simd
  for (int64_t u = 0; u < s.units; ++u) {
    const float x = a[u] + b[u];
    const float v = kReluHere ? (x < 0.f ? 0.f : x) : Tanh(x);  // NaN stays NaN
    Store(y + u, v);
    Store(state + u, v);
  }
}

template <typename T>
MYCELIA_INLINE void PlainForward(const PlainStep<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) s.relu ? PlainRow<T, true>(s, r) : PlainRow<T, false>(s, r);
}

MYCELIA_CLONES void RunPlain(const PlainStep<float>& s) { PlainForward(s); }
MYCELIA_CLONES void RunPlain(const PlainStep<BFloat16>& s) { PlainForward(s); }

template <typename T>
struct PlainBack {
  int64_t rows, units, size, row;
  bool relu;
  const T* y;           // row r at r * row * size
  const T* dy;          // likewise, or null
  const float* dstate;  // (rows, units)
  T* dgates;            // row r at r * row * size
  T* compact;           // row r at r * size
  float* dbias;         // added to
};

template <typename T, bool kReluHere, bool kGiven>
MYCELIA_INLINE void PlainBackRow(const PlainBack<T>& s, int64_t r) {
  const T* y = s.y + r * s.row * s.size;
  const T* dy = kGiven ? s.dy + r * s.row * s.size : nullptr;
  const float* dstate = s.dstate + r * s.units;
  T* d = s.dgates + r * s.row * s.size;
  T* c = s.compact + r * s.size;
  float* db = s.dbias;
#pragma omp simd
  for (int64_t u = 0; u < s.units; ++u) {
    const float v = ToFloat(y[u]);
    float dh = dstate[u];
    if (kGiven) dh += ToFloat(dy[u]);
    const float made = kReluHere ? (v > 0.f ? dh : 0.f) : dh * (1.f - v * v);
    db[u] += made;
    Store(d + u, made);
    Store(c + u, made);
  }
}

template <typename T>
MYCELIA_INLINE void PlainBackward(const PlainBack<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (s.dy != nullptr) {
      s.relu ? PlainBackRow<T, true, true>(s, r) : PlainBackRow<T, false, true>(s, r);
    } else {
      s.relu ? PlainBackRow<T, true, false>(s, r) : PlainBackRow<T, false, false>(s, r);
    }
  }
}

MYCELIA_CLONES void RunPlainBack(const PlainBack<float>& s) { PlainBackward(s); }
MYCELIA_CLONES void RunPlainBack(const PlainBack<BFloat16>& s) { PlainBackward(s); }

// Layers -------------------------------------------------------------------------------------------------

template <typename T>
void RunLayer(const Layer& layer, Kind kind, Type type, const T* x, const T* h0, const T* w_ih, const T* w_hh,
              const float* bias, const float* candidate_bias, T* y, T* h_last, T* gates, float* part_of_state) {
  const int64_t h = layer.size;
  float* place = nullptr;
  if (type == Type::f32) place = reinterpret_cast<float*>(kind == kGru ? gates : y);
  const float* from_input = FromInput(layer, type, x, w_ih, bias, place);
  auto step = [&](const Part& part, const float*, int64_t row, const float* sums, const T* before, T* after) {
    const int64_t u = part.unit;
    if (kind == kGru) {
      GruStep<T> s;
      s.rows = part.rows;
      s.units = part.units;
      s.size = h;
      s.row = layer.row();
      s.from_state = sums;
      s.from_input = from_input + row * 3 * h + u;
      s.bias = candidate_bias == nullptr ? nullptr : candidate_bias + u;
      s.gates = gates == nullptr ? nullptr : gates + row * 3 * h + u;
      s.part = part_of_state == nullptr ? nullptr : part_of_state + row * h + u;
      s.before = before;
      s.y = y + row * h + u;
      s.state = after;
      RunGru(s);
    } else {
      PlainStep<T> s;
      s.rows = part.rows;
      s.units = part.units;
      s.size = h;
      s.row = layer.row();
      s.relu = kind == kRelu;
      s.from_state = sums;
      s.from_input = from_input + row * h + u;
      s.y = y + row * h + u;
      s.state = after;
      RunPlain(s);
    }
  };
  auto nothing = [](const Part&, const float*) {};
  ForwardSteps(layer, type, w_hh, h0, h_last, false, nothing, step, nothing);
}

template <typename T>
struct Gradients {
  const T *x, *h0, *w_ih, *w_hh, *y, *gates;
  const float* part;
  const T *dy, *dh;                    // cotangents, null where there are none
  T *dx, *dh0, *dw_ih, *dw_hh;         // dx null where it is not wanted
  T *dbias_ih, *dbias_hh;              // null where they are not wanted; an Elman network has the first only
};

template <typename T>
void RunGradients(const Layer& layer, Kind kind, Type type, const Gradients<T>& g) {
  const int64_t h = layer.size, rows = layer.rows(), count = layer.gates;
  const int64_t piece = (rows * count * h + 31) / 32 * 32;
  T* dgates = static_cast<T*>(Scratch(1, (kind == kGru ? 2 : 1) * piece * sizeof(T)));
  T* dinput = kind == kGru ? dgates + piece : dgates;
  T* states = static_cast<T*>(Scratch(4, rows * h * sizeof(T)));  // before each step
  std::vector<float> dbias((kind == kGru ? 4 : 1) * h);
  auto begin = [&](const Part& part, float* direct) { std::fill_n(direct, part.rows * part.units, 0.f); };
  auto step = [&](const Part& part, const BackStep<T>& b) {
    const int64_t u = part.unit;
    if (kind == kGru) {
      GruBack<T> s;
      s.rows = part.rows;
      s.units = part.units;
      s.size = h;
      s.row = layer.row();
      s.gates = g.gates + b.row * 3 * h + u;
      s.part = g.part + b.row * h + u;
      s.before = b.before;
      s.dy = g.dy == nullptr ? nullptr : g.dy + b.row * h + u;
      s.dstate = b.dstate;
      s.direct = b.extra;
      s.dinput = dinput + b.row * 3 * h + u;
      s.dgates = dgates + b.row * 3 * h + u;
      s.compact = b.compact;
      s.dbias = b.dbias;
      RunGruBack(s);
    } else {
      PlainBack<T> s;
      s.rows = part.rows;
      s.units = part.units;
      s.size = h;
      s.row = layer.row();
      s.relu = kind == kRelu;
      s.y = g.y + b.row * h + u;
      s.dy = g.dy == nullptr ? nullptr : g.dy + b.row * h + u;
      s.dstate = b.dstate;
      s.dgates = dgates + b.row * h + u;
      s.compact = b.compact;
      s.dbias = b.dbias;
      RunPlainBack(s);
    }
  };
  auto end = [&](const Part& part, const float* dstate, const float* direct) {
    for (int64_t r = 0; r < part.rows; ++r) {
      T* to = g.dh0 + (part.first + r) * h + part.unit;
      for (int64_t i = 0; i < part.units; ++i) {
        Store(to + i, dstate[r * part.units + i] + direct[r * part.units + i]);
      }
    }
  };
  BackwardSteps(layer, type, g.w_hh, g.h0, g.y, g.dh, kind == kGru ? 4 : 1, states, dbias.data(), begin, step, end);
  if (g.dbias_ih != nullptr) {
    for (int64_t i = 0; i < count * h; ++i) Store(g.dbias_ih + i, dbias[i]);
  }
  if (g.dbias_hh != nullptr) {
    for (int64_t i = 0; i < 3 * h; ++i) Store(g.dbias_hh + i, dbias[i < 2 * h ? i : i + h]);
  }
  InputGradients(layer, type, dinput, g.x, g.w_ih, g.dx, g.dw_ih);
  StateGradients(layer, type, dgates, states, g.dw_hh);
}

// Calls --------------------------------------------------------------------------------------------------

template <typename T>
void CallLayer(const Layer& layer, Kind kind, Type type, ffi::RemainingArgs& args, ffi::RemainingRets& rets) {
  const bool keep = rets.size() > 2;
  RunLayer<T>(layer, kind, type, In<T>(args, 0), In<T>(args, 1), In<T>(args, 2), In<T>(args, 3),
              args.size() > 4 ? In<float>(args, 4) : nullptr, args.size() > 5 ? In<float>(args, 5) : nullptr,
              Out<T>(rets, 0), Out<T>(rets, 1), keep ? Out<T>(rets, 2) : nullptr, keep ? Out<float>(rets, 3) : nullptr);
}

template <typename T>
void CallGradients(const Layer& layer, Kind kind, Type type, ffi::RemainingArgs& args, ffi::RemainingRets& rets,
                   ffi::Span<const int64_t> flags) {
  Gradients<T> g{};
  g.x = In<T>(args, 0);
  g.h0 = In<T>(args, 1);
  g.w_ih = In<T>(args, 2);
  g.w_hh = In<T>(args, 3);
  g.y = In<T>(args, 4);
  size_t next = 5;
  if (kind == kGru) {
    g.gates = In<T>(args, next++);
    g.part = In<float>(args, next++);
  }
  if (flags[3]) g.dy = In<T>(args, next++);
  if (flags[4]) g.dh = In<T>(args, next++);
  next = 0;
  if (flags[5]) g.dx = Out<T>(rets, next++);
  g.dh0 = Out<T>(rets, next++);
  g.dw_ih = Out<T>(rets, next++);
  g.dw_hh = Out<T>(rets, next++);
  if (flags[6]) g.dbias_ih = Out<T>(rets, next++);
  if (flags[6] && kind == kGru) g.dbias_hh = Out<T>(rets, next++);
  RunGradients(layer, kind, type, g);
}

Kind KindOf(ffi::Span<const int64_t> flags) {
  if (flags[0] < kGru || flags[0] > kRelu) throw std::invalid_argument("an unknown kind of layer");
  return static_cast<Kind>(flags[0]);
}

ffi::Error RecurrentLayer(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> flags) {
  return Guarded([&] {
    if (flags.size() != 3) throw std::invalid_argument("malformed call of a recurrent layer");
    const Kind kind = KindOf(flags);
    const bool fits = kind == kGru ? (args.size() == 4 || args.size() == 6) && (rets.size() == 2 || rets.size() == 4)
                                   : (args.size() == 4 || args.size() == 5) && rets.size() == 2;
    if (!fits) throw std::invalid_argument("malformed call of a recurrent layer");
    const ffi::AnyBuffer x = args.get<ffi::AnyBuffer>(0).value();
    const Layer layer(x, args.get<ffi::AnyBuffer>(1).value(), kind == kGru ? 3 : 1, flags[1] != 0, flags[2] != 0);
    if (x.element_type() == ffi::DataType::F32) {
      CallLayer<float>(layer, kind, Type::f32, args, rets);
    } else {
      CallLayer<BFloat16>(layer, kind, Type::bf16, args, rets);
    }
  });
}

ffi::Error RecurrentLayerGrad(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Span<const int64_t> flags) {
  return Guarded([&] {
    if (flags.size() != 7) throw std::invalid_argument("malformed call of the gradients of a recurrent layer");
    const Kind kind = KindOf(flags);
    const bool gru = kind == kGru;
    if (static_cast<int64_t>(args.size()) != 5 + (gru ? 2 : 0) + flags[3] + flags[4] ||
        static_cast<int64_t>(rets.size()) != 3 + flags[5] + flags[6] * (gru ? 2 : 1)) {
      throw std::invalid_argument("malformed call of the gradients of a recurrent layer");
    }
    const ffi::AnyBuffer x = args.get<ffi::AnyBuffer>(0).value();
    const Layer layer(x, args.get<ffi::AnyBuffer>(1).value(), gru ? 3 : 1, flags[1] != 0, flags[2] != 0);
    if (x.element_type() == ffi::DataType::F32) {
      CallGradients<float>(layer, kind, Type::f32, args, rets, flags);
    } else {
      CallGradients<BFloat16>(layer, kind, Type::bf16, args, rets, flags);
    }
  });
}

}  // namespace
}  // namespace mycelia

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_recurrent_layer, mycelia::RecurrentLayer,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>("flags"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    mycelia_recurrent_layer_grad, mycelia::RecurrentLayerGrad,
    xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<xla::ffi::Span<const int64_t>>("flags"));
