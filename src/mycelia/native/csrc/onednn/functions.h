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

// The normal distribution function, within 8e-7 of its value for |x| < 5, and exp(-x^2 / 2).
//
// For z = |x| / sqrt(2) and t = 1 / (1 + z / 2), exp(z^2) erfc(z) is t times a polynomial of degree 8 in t (a fit of
// relative error 5e-8).
MYCELIA_INLINE float Normal(float x, float* power) {
  const float t = 1.f / (1.f + 0.353553391f * std::fabs(x));
  float p = -6.010870778e-02f;
  p = p * t + 2.894461009e-01f;
  p = p * t + -4.968295769e-01f;
  p = p * t + 2.885151463e-01f;
  p = p * t + -3.339902026e-02f;
  p = p * t + 2.053604292e-01f;
  p = p * t + 2.424793786e-01f;
  p = p * t + 2.824538421e-01f;
  p = p * t + 2.820823575e-01f;
  *power = Exp(-0.5f * x * x);
  const float tail = 0.5f * *power * t * p;
  return x < 0.f ? tail : 1.f - tail;
}

}  // namespace mycelia
