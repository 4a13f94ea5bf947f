// Vectors of 16 numbers: whether the processor has them, and functions that are compiled for it.
#pragma once

// For functions on vectors of 16 numbers, which run only where `Wide` says so.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define MYCELIA_WIDE __attribute__((target("arch=x86-64-v4")))
#else
#define MYCELIA_WIDE
#endif

namespace mycelia {

// Whether the processor has registers of 16 numbers, and 32 of them.
inline bool Wide() {
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512cd");
  return wide;
#else
  return false;
#endif
}

}  // namespace mycelia
