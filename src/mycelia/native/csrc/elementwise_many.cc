// Short elementwise programs over many groups of float32 arrays, in place where the caller allows it.
//
// An optimizer updates hundreds of parameters by the same dozen operations. XLA makes several kernels for each
// parameter; here one call runs one small program over all of them. Arrays are worked on in blocks that stay in the
// first-level cache: each instruction is a loop over a block that the C++ compiler turns into vector instructions.
//
// Arguments: the scalars of the program, then arrays. Attributes:
//   program    four numbers for each instruction: operation, target register, operands. An operand is a register, or
//              -1 - k for scalar k (constants follow the scalars that are arguments).
//   constants  float32 constants
//   signature  inputs and outputs of a group, registers, scalar arguments
//   results    the register of each output
//   layout     for each group: elements; for each input the argument (scalars not counted) and the element it begins
//              at; for each output the result
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "vectorized.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int64_t kBlock = 512;      // elements of a block: 2 KiB, so that 16 registers fit into the first-level cache
constexpr int64_t kBlocksAtOnce = 8;  // blocks that a thread takes at a time
constexpr int64_t kAlone = 16384;    // at most this many elements are not worth a second thread
constexpr int kMostRegisters = 32;

enum Operation : int32_t { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kSqrt, kNeg, kSquare, kAbs, kOperations };

struct Instruction {
  int32_t operation, target, a, b;
};

struct Group {
  int64_t size, first_block;
  const float* inputs[kMostRegisters];
  float* outputs[kMostRegisters];
};

struct Work {
  std::vector<Instruction> program;
  std::vector<float> scalars;
  std::vector<int64_t> results;
  std::vector<Group> groups;
  int64_t n_inputs, n_registers, blocks;
  std::atomic<int64_t> next{0}, done{0};
};

template <typename F>
inline __attribute__((always_inline)) void Binary(float* out, const float* a, float x, const float* b, float y,
                                                  int64_t n, F f) {
  if (a != nullptr && b != nullptr) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if (a != nullptr) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], y);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = f(x, b[i]);
  }
}

// Asks for what the next block reads: arrays are read in turns, too short ones for the processor to foresee them.
inline void Foresee(const Work& work, const Group& group, int64_t at, int64_t n) {
  for (int64_t i = 0; i < work.n_inputs; ++i) {
    for (int64_t k = 0; k < n; k += 16) __builtin_prefetch(group.inputs[i] + at + k);
  }
}

// One block of a group: n elements from `at` on.
MYCELIA_CLONES void RunBlock(const Work& work, const Group& group, int64_t at, int64_t n, float* scratch) {
  const float* registers[kMostRegisters];
  for (int64_t i = 0; i < work.n_inputs; ++i) registers[i] = group.inputs[i] + at;
  for (int64_t i = work.n_inputs; i < work.n_registers; ++i) registers[i] = scratch + i * kBlock;
  for (const Instruction& in : work.program) {
    float* out = scratch + in.target * kBlock;
    const float* a = in.a >= 0 ? registers[in.a] : nullptr;
    const float* b = in.b >= 0 ? registers[in.b] : nullptr;
    const float x = in.a >= 0 ? 0.f : work.scalars[-1 - in.a];
    const float y = in.b >= 0 ? 0.f : work.scalars[-1 - in.b];
    switch (in.operation) {
      case kAdd: Binary(out, a, x, b, y, n, [](float p, float q) { return p + q; }); break;
      case kSub: Binary(out, a, x, b, y, n, [](float p, float q) { return p - q; }); break;
      case kMul: Binary(out, a, x, b, y, n, [](float p, float q) { return p * q; }); break;
      case kDiv: Binary(out, a, x, b, y, n, [](float p, float q) { return p / q; }); break;
      // a NaN on either side is the result
      case kMaximum:
        Binary(out, a, x, b, y, n, [](float p, float q) { return p != p || p > q ? p : q; });
        break;
      case kMinimum:
        Binary(out, a, x, b, y, n, [](float p, float q) { return p != p || p < q ? p : q; });
        break;
      case kSqrt: for (int64_t i = 0; i < n; ++i) out[i] = std::sqrt(a[i]); break;
      case kNeg: for (int64_t i = 0; i < n; ++i) out[i] = -a[i]; break;
      case kSquare: for (int64_t i = 0; i < n; ++i) out[i] = a[i] * a[i]; break;
      case kAbs: for (int64_t i = 0; i < n; ++i) out[i] = std::fabs(a[i]); break;
      default: break;
    }
  }
  // only now: an output may lie in the place of an input
  for (size_t k = 0; k < work.results.size(); ++k) {
    std::memcpy(group.outputs[k] + at, registers[work.results[k]], n * sizeof(float));
  }
}

void RunBlocks(Work& work) {
  std::vector<float> scratch(work.n_registers * kBlock);
  for (;;) {
    const int64_t first = work.next.fetch_add(kBlocksAtOnce);
    if (first >= work.blocks) return;
    const int64_t last = std::min(first + kBlocksAtOnce, work.blocks);
    auto group = std::upper_bound(work.groups.begin(), work.groups.end(), first,
                                  [](int64_t block, const Group& g) { return block < g.first_block; }) - 1;
    for (int64_t block = first; block < last; ++block) {
      while (group + 1 != work.groups.end() && (group + 1)->first_block <= block) ++group;
      const int64_t at = (block - group->first_block) * kBlock;
      if (at + kBlock < group->size) Foresee(work, *group, at + kBlock, std::min(kBlock, group->size - at - kBlock));
      RunBlock(work, *group, at, std::min(kBlock, group->size - at), scratch.data());
    }
    work.done.fetch_add(last - first);
  }
}

bool IsFloat(const ffi::AnyBuffer& buffer) { return buffer.element_type() == ffi::DataType::F32; }

ffi::Error ElementwiseMany(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                           ffi::Span<const int32_t> program, ffi::Span<const float> constants,
                           ffi::Span<const int64_t> signature, ffi::Span<const int64_t> results,
                           ffi::Span<const int64_t> layout) {
  auto work = std::make_shared<Work>();
  if (signature.size() != 4 || program.size() % 4 != 0) return ffi::Error::InvalidArgument("malformed program");
  const int64_t n_inputs = signature[0], n_outputs = signature[1], n_registers = signature[2], n_scalars = signature[3];
  if (n_inputs < 0 || n_inputs > n_registers || n_registers > kMostRegisters || n_outputs > kMostRegisters ||
      n_scalars < 0 || n_scalars > static_cast<int64_t>(args.size()) ||
      static_cast<int64_t>(results.size()) != n_outputs) {
    return ffi::Error::InvalidArgument("malformed signature");
  }
  for (int64_t i = 0; i < n_scalars; ++i) {
    auto scalar = args.get<ffi::AnyBuffer>(i);
    if (!scalar.has_value() || !IsFloat(*scalar)) return ffi::Error::InvalidArgument("a scalar is not float32");
    work->scalars.push_back(*static_cast<const float*>(scalar->untyped_data()));
  }
  work->scalars.insert(work->scalars.end(), constants.begin(), constants.end());
  const int64_t n_all = static_cast<int64_t>(work->scalars.size());
  for (size_t i = 0; i < program.size(); i += 4) {
    const Instruction in{program[i], program[i + 1], program[i + 2], program[i + 3]};
    const bool unary = in.operation >= kSqrt;
    auto fits = [&](int32_t k) { return k < n_registers && -1 - k < n_all; };
    if (in.operation < 0 || in.operation >= kOperations || in.target < n_inputs || in.target >= n_registers ||
        !fits(in.a) || !fits(in.b) || (in.a < 0 && (unary || in.b < 0))) {
      return ffi::Error::InvalidArgument("malformed instruction");
    }
    work->program.push_back(in);
  }
  for (int64_t r : results) {
    if (r < 0 || r >= n_registers) return ffi::Error::InvalidArgument("malformed result");
  }
  work->results.assign(results.begin(), results.end());
  work->n_inputs = n_inputs;
  work->n_registers = n_registers;

  const int64_t row = 1 + 2 * n_inputs + n_outputs;
  if (layout.size() % row != 0) return ffi::Error::InvalidArgument("malformed layout");
  work->groups.resize(layout.size() / row);
  int64_t blocks = 0, elements = 0;
  for (size_t g = 0; g < work->groups.size(); ++g) {
    const int64_t* at = layout.begin() + g * row;
    Group& group = work->groups[g];
    group.size = *at++;
    group.first_block = blocks;
    for (int64_t i = 0; i < n_inputs; ++i, at += 2) {
      auto buffer = args.get<ffi::AnyBuffer>(n_scalars + at[0]);
      if (!buffer.has_value() || !IsFloat(*buffer) || at[1] < 0 ||
          at[1] + group.size > static_cast<int64_t>(buffer->element_count())) {
        return ffi::Error::InvalidArgument("an input is not float32, or too small");
      }
      group.inputs[i] = static_cast<const float*>(buffer->untyped_data()) + at[1];
    }
    for (int64_t k = 0; k < n_outputs; ++k, ++at) {
      auto buffer = rets.get<ffi::AnyBuffer>(*at);
      if (!buffer.has_value() || !IsFloat(**buffer) ||
          static_cast<int64_t>((*buffer)->element_count()) != group.size) {
        return ffi::Error::InvalidArgument("an output is not float32, or of another size");
      }
      group.outputs[k] = static_cast<float*>((*buffer)->untyped_data());
    }
    blocks += (group.size + kBlock - 1) / kBlock;
    elements += group.size;
  }
  work->blocks = blocks;
  if (elements > kAlone) {
    const int64_t helpers = std::min<int64_t>(pool.num_threads() - 1, elements / kAlone);
    for (int64_t i = 0; i < helpers; ++i) pool.Schedule([work] { RunBlocks(*work); });
  }
  RunBlocks(*work);
  // Blocks still under way are in other threads that are running: no one waits for a thread of the pool.
  while (work->done.load() < blocks) std::this_thread::yield();
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(mycelia_elementwise_many, ElementwiseMany,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<ffi::Span<const int32_t>>("program")
                                  .Attr<ffi::Span<const float>>("constants")
                                  .Attr<ffi::Span<const int64_t>>("signature")
                                  .Attr<ffi::Span<const int64_t>>("results")
                                  .Attr<ffi::Span<const int64_t>>("layout"));
