// Functions of float32 numbers without branches, for loops that become vector instructions.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "../vectorized.h"

namespace mycelia {

// e^x within 2 units in the last place; 0, infinity and NaN where they belong.
//
// x = n log 2 + r with |r| <= log(2) / 2; e^r by a polynomial (S. Moshier, Cephes, expf), and 2^n in two factors, so
// that results near both ends of the range are right.
MYCELIA_INLINE float Exp(float x) {
  x = x > 89.f ? 89.f : x;
  x = x < -104.f ? -104.f : x;
  const float shift = 12582912.f;  // 1.5 * 2^23: adding it rounds to whole numbers
  const float shifted = x * 1.44269504088896341f + shift;
  const float n = shifted - shift;
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  const int32_t whole = Bits<int32_t>(shifted) - Bits<int32_t>(shift);
  const int32_t half = whole >> 1;
  const float first = Bits<float>(static_cast<uint32_t>(half + 127) << 23);
  const float second = Bits<float>(static_cast<uint32_t>(whole - half + 127) << 23);
  return p * first * second;
}

}  // namespace mycelia
