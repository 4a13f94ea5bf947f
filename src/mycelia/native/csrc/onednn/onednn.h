// What the kernels made of oneDNN primitives share: the engine, a cache of primitives, layouts and scratch memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "xla/ffi/api/ffi.h"

namespace mycelia {

namespace ffi = xla::ffi;
using Dims = std::vector<int64_t>;

inline dnnl::engine& Engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline dnnl::stream& Stream() {
  static dnnl::stream stream(Engine());
  return stream;
}

// One kernel runs at a time: each uses all threads, and they share scratch memory.
inline std::mutex& Running() {
  static std::mutex mutex;
  return mutex;
}

// Memory that kernels reuse; held while `Running` is. Slots do not overlap.
inline void* Scratch(int slot, size_t bytes) {
  struct Block {
    void* data = nullptr;
    size_t size = 0;
  };
  static Block blocks[8];
  Block& block = blocks[slot];
  if (block.size < bytes) {
    std::free(block.data);
    block.size = (bytes + (1 << 21) - 1) >> 21 << 21;
    block.data = std::aligned_alloc(1 << 21, block.size);
    if (block.data == nullptr) {
      block.size = 0;
      throw std::bad_alloc();
    }
  }
  return block.data;
}

// The key of a primitive: whatever it was made from, as bytes.
class Key {
 public:
  explicit Key(const char* kind) : bytes_(kind) {}
  void Add(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  template <typename Values>
  void AddAll(const Values& values) {
    Add(static_cast<int64_t>(values.size()));
    for (int64_t v : values) Add(v);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The entry of a key, made by `make` when it is first asked for. `Running` is held.
template <typename Entry, typename Make>
Entry& Cached(const Key& key, Make make) {
  static std::unordered_map<std::string, std::unique_ptr<Entry>> entries;
  auto found = entries.find(key.bytes());
  if (found == entries.end()) {
    if (entries.size() >= 4096) entries.clear();  // shapes that change all the time
    found = entries.emplace(key.bytes(), std::make_unique<Entry>(make())).first;
  }
  return *found->second;
}

inline bool Served(ffi::DataType type) { return type == ffi::DataType::F32 || type == ffi::DataType::BF16; }

inline dnnl::memory::data_type TypeOf(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F32: return dnnl::memory::data_type::f32;
    case ffi::DataType::BF16: return dnnl::memory::data_type::bf16;
    case ffi::DataType::F16: return dnnl::memory::data_type::f16;
    case ffi::DataType::S8: return dnnl::memory::data_type::s8;
    case ffi::DataType::U8: return dnnl::memory::data_type::u8;
    case ffi::DataType::S32: return dnnl::memory::data_type::s32;
    default: throw std::invalid_argument("a dtype that oneDNN does not have");
  }
}

inline Dims DimsOf(const ffi::AnyBuffer& buffer) {
  auto dims = buffer.dimensions();
  return Dims(dims.begin(), dims.end());
}

inline Dims RowMajor(const Dims& dims) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= dims[i];
  }
  return strides;
}

// A buffer that holds an array in one layout as an argument in another: reordered if they differ.
inline dnnl::memory Arranged(const dnnl::memory::desc& given, void* data, const dnnl::memory::desc& wanted, int slot) {
  if (given == wanted) return dnnl::memory(given, Engine(), data);
  dnnl::memory from(given, Engine(), data);
  dnnl::memory to(wanted, Engine(), Scratch(slot, wanted.get_size()));
  dnnl::reorder(from, to).execute(Stream(), from, to);
  return to;
}

// Runs a kernel's body; what it throws becomes the call's error.
template <typename Body>
ffi::Error Guarded(Body body) {
  std::lock_guard<std::mutex> lock(Running());
  try {
    body();
    return ffi::Error::Success();
  } catch (const dnnl::error& error) {
    return ffi::Error::Internal(std::string("oneDNN: ") + error.what());
  } catch (const std::bad_alloc&) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for a kernel's scratch space");
  } catch (const std::exception& error) {
    return ffi::Error::InvalidArgument(error.what());
  }
}

}  // namespace mycelia
