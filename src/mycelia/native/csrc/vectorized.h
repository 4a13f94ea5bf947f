// Loops that are compiled for several kinds of processors (the fittest runs), and bfloat16 in them.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define MYCELIA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MYCELIA_CLONES
#endif

// For what such functions call: only code that becomes part of them is compiled for their processor.
#define MYCELIA_INLINE inline __attribute__((always_inline))

namespace mycelia {

template <typename To, typename From>
MYCELIA_INLINE To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are read as a type of the same size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

struct BFloat16 {
  uint16_t bits;
};

MYCELIA_INLINE float ToFloat(float x) { return x; }
MYCELIA_INLINE float ToFloat(BFloat16 x) { return Bits<float>(static_cast<uint32_t>(x.bits) << 16); }

MYCELIA_INLINE void Store(float* to, float x) { *to = x; }

// The nearest bfloat16, of two equally near ones the even; NaN stays NaN.
MYCELIA_INLINE void Store(BFloat16* to, float x) {
  const uint32_t bits = Bits<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  to->bits = static_cast<uint16_t>(x != x ? (bits >> 16) | 0x40u : rounded);
}

}  // namespace mycelia
