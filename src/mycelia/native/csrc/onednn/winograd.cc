// Convolutions by 3 x 3 kernels as products of transformed tiles: F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (arXiv:1509.09308), after Winograd.
//
// A tile of 4 x 4 pixels d and the kernel g give 2 x 2 pixels: A' [(G g G') * (B' d B)] A, where * is element by
// element and sums over channels, so that 16 matrix products of (tiles, in) by (in, out) do for all tiles what takes 36
// products of (pixels, in) by (in, out) otherwise. B, A hold nothing but 0, 1 and -1, G also 1/2: in float32 the result
// is as exact as sums in any other order, unless pixels of one tile differ in size by many orders.
//
// Each thread takes blocks of tiles: what it makes of them stays in its cache. The gradient of the kernel is the
// product of the same transformed pixels with (A y A') of the result's gradient, summed over tiles, then G' (..) G.
#include "winograd.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "wide.h"

namespace mycelia::winograd {
namespace {

constexpr int64_t kLanes = 16;              // channels of a vector
constexpr int64_t kRows = 12, kColumns = 2 * kLanes;  // what the product of one step gives
constexpr int64_t kSums = 8;                // rows of sums over tiles that one step adds to
constexpr int64_t kFrequencies = 16;
typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));

int64_t TileRows(const Shape& s) { return (s.rows + 1) / 2; }
int64_t TileColumns(const Shape& s) { return (s.columns + 1) / 2; }
int64_t Tiles(const Shape& s) { return s.batch * TileRows(s) * TileColumns(s); }

struct Tile {
  int64_t picture, row, column;  // of the result
};

Tile TileAt(const Shape& s, int64_t number) {
  const int64_t columns = TileColumns(s), each = TileRows(s) * columns;
  const int64_t picture = number / each, place = number % each;
  return {picture, 2 * (place / columns), 2 * (place % columns)};
}

// B' d B of the pixels of a tile, for channels from `channel` on, to `to[frequency * step]`.
MYCELIA_WIDE inline void TransformPixels(const float* image, const Shape& s, const Tile& tile, int64_t channel,
                                         float* to, int64_t step) {
  const int64_t top = tile.row - s.top, left = tile.column - s.left;
  const float* first = image + ((tile.picture * s.height + top) * s.width + left) * s.in + channel;
  const bool inside = top >= 0 && left >= 0 && top + 4 <= s.height && left + 4 <= s.width;
  Vector rows[4][4];
  for (int64_t j = 0; j < 4; ++j) {
    Vector d[4];
    for (int64_t i = 0; i < 4; ++i) {
      const bool there = inside || (top + i >= 0 && top + i < s.height && left + j >= 0 && left + j < s.width);
      d[i] = there ? *reinterpret_cast<const Vector*>(first + (i * s.width + j) * s.in) : Vector{};
    }
    rows[0][j] = d[0] - d[2];
    rows[1][j] = d[1] + d[2];
    rows[2][j] = d[2] - d[1];
    rows[3][j] = d[1] - d[3];
  }
  for (int64_t i = 0; i < 4; ++i) {
    const Vector* d = rows[i];
    float* at = to + 4 * i * step;
    *reinterpret_cast<Vector*>(at) = d[0] - d[2];
    *reinterpret_cast<Vector*>(at + step) = d[1] + d[2];
    *reinterpret_cast<Vector*>(at + 2 * step) = d[2] - d[1];
    *reinterpret_cast<Vector*>(at + 3 * step) = d[1] - d[3];
  }
}

// A' m A of a tile, for channels from `channel` on, to the pixels of the result that exist. `odd` becomes NaN if one
// of them is not finite.
MYCELIA_WIDE inline void TransformBack(const float* from, int64_t step, const Shape& s, const Tile& tile,
                                       int64_t channel, const After& after, float* result, Vector* odd) {
  Vector half[2][4];
  for (int64_t j = 0; j < 4; ++j) {
    Vector m[4];
    for (int64_t i = 0; i < 4; ++i) m[i] = *reinterpret_cast<const Vector*>(from + (4 * i + j) * step);
    half[0][j] = m[0] + m[1] + m[2];
    half[1][j] = m[1] - m[2] - m[3];
  }
  for (int64_t i = 0; i < 2; ++i) {
    if (tile.row + i >= s.rows) continue;
    for (int64_t j = 0; j < 2; ++j) {
      if (tile.column + j >= s.columns) continue;
      const Vector* h = half[i];
      Vector y = j == 0 ? h[0] + h[1] + h[2] : h[1] - h[2] - h[3];
      *odd += y * 0.0f;
      const int64_t at = ((tile.picture * s.rows + tile.row + i) * s.columns + tile.column + j) * s.out + channel;
      if (after.bias != nullptr) y += *reinterpret_cast<const Vector*>(after.bias + channel);
      if (after.gain != nullptr) {
        y *= *reinterpret_cast<const Vector*>(after.gain + channel);
        y += *reinterpret_cast<const Vector*>(after.shift + channel);
      }
      if (after.image != nullptr) y += *reinterpret_cast<const Vector*>(after.image + at);
      if (after.relu) y = y < 0.0f ? Vector{} : y;
      *reinterpret_cast<Vector*>(result + at) = y;
    }
  }
}

// kRows rows of `to` = rows of `left` (each `depth` numbers, `left_step` apart) times a panel (depth, kColumns).
MYCELIA_WIDE inline void Step(const float* left, int64_t left_step, const float* panel, int64_t depth, float* to,
                              int64_t to_step) {
  Vector sums[kRows][2] = {};
  for (int64_t c = 0; c < depth; ++c) {
    const Vector b0 = *reinterpret_cast<const Vector*>(panel + c * kColumns);
    const Vector b1 = *reinterpret_cast<const Vector*>(panel + c * kColumns + kLanes);
#pragma GCC unroll 12
    for (int64_t r = 0; r < kRows; ++r) {
      const float a = left[r * left_step + c];
      sums[r][0] += a * b0;
      sums[r][1] += a * b1;
    }
  }
#pragma GCC unroll 12
  for (int64_t r = 0; r < kRows; ++r) {
    *reinterpret_cast<Vector*>(to + r * to_step) = sums[r][0];
    *reinterpret_cast<Vector*>(to + r * to_step + kLanes) = sums[r][1];
  }
}

// kSums rows of `to` (plus what stands there, unless it is `fresh`) = columns of `left` times columns of `right`, both
// of `depth` rows.
MYCELIA_WIDE inline void StepTransposed(const float* left, int64_t left_step, const float* right, int64_t right_step,
                                        int64_t depth, bool fresh, float* to, int64_t to_step) {
  Vector sums[kSums][2] = {};
  for (int64_t t = 0; t < depth; ++t) {
    const Vector b0 = *reinterpret_cast<const Vector*>(right + t * right_step);
    const Vector b1 = *reinterpret_cast<const Vector*>(right + t * right_step + kLanes);
#pragma GCC unroll 8
    for (int64_t r = 0; r < kSums; ++r) {
      const float a = left[t * left_step + r];
      sums[r][0] += a * b0;
      sums[r][1] += a * b1;
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kSums; ++r) {
    Vector* at = reinterpret_cast<Vector*>(to + r * to_step);
    Vector* next = reinterpret_cast<Vector*>(to + r * to_step + kLanes);
    *at = fresh ? sums[r][0] : *at + sums[r][0];
    *next = fresh ? sums[r][1] : *next + sums[r][1];
  }
}

MYCELIA_WIDE bool AnyOdd(const Vector& odd) {
  bool found = false;
  for (int64_t l = 0; l < kLanes; ++l) found |= !(odd[l] == 0.0f);
  return found;
}

// How many tiles a block has: what is made of them and of a part of the kernel shall fit into a core's cache.
int64_t BlockTiles(const Shape& s, int64_t threads) {
  const int64_t most = std::max<int64_t>(4 * kRows, (768 << 10) / (kFrequencies * 4 * (s.in + s.out)));
  const int64_t share = (Tiles(s) + threads - 1) / threads;
  const int64_t blocks = (share + most - 1) / most;
  const int64_t each = (share + blocks - 1) / blocks;
  return (each + kRows - 1) / kRows * kRows;
}

MYCELIA_WIDE void Block(const float* image, const float* prepared, const Shape& s, const After& after, int64_t begin,
                        int64_t end, int64_t room, float* pixels, float* products, float* result, Vector* odd) {
  const int64_t count = end - begin;
  for (int64_t t = 0; t < count; ++t) {
    const Tile tile = TileAt(s, begin + t);
    for (int64_t c = 0; c < s.in; c += kLanes) TransformPixels(image, s, tile, c, pixels + t * s.in + c, room * s.in);
  }
  for (int64_t f = 0; f < kFrequencies; ++f) {
    for (int64_t o = 0; o < s.out; o += kColumns) {
      const float* panel = prepared + f * s.in * s.out + o * s.in;
      for (int64_t t = 0; t < count; t += kRows) {
        Step(pixels + (f * room + t) * s.in, s.in, panel, s.in, products + (f * room + t) * s.out + o, s.out);
      }
    }
  }
  for (int64_t t = 0; t < count; ++t) {
    const Tile tile = TileAt(s, begin + t);
    for (int64_t o = 0; o < s.out; o += kLanes) {
      TransformBack(products + t * s.out + o, room * s.out, s, tile, o, after, result, odd);
    }
  }
}

// G g G' for kernels (out, in) to (frequency, out / kColumns, in, kColumns).
MYCELIA_WIDE void PrepareRow(const float* kernel, const Shape& s, bool turned, int64_t i, float* prepared) {
  for (int64_t o = 0; o < s.out; o += kLanes) {
    float values[9][kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
      const float* from = turned ? kernel + (i * s.out + o + l) * 9 : kernel + ((o + l) * s.in + i) * 9;
      for (int64_t k = 0; k < 9; ++k) values[k][l] = from[turned ? 8 - k : k];
    }
    Vector rows[4][3];
    for (int64_t j = 0; j < 3; ++j) {
      const Vector a = *reinterpret_cast<Vector*>(values[j]), b = *reinterpret_cast<Vector*>(values[3 + j]),
                   c = *reinterpret_cast<Vector*>(values[6 + j]);
      rows[0][j] = a;
      rows[1][j] = (a + b + c) * 0.5f;
      rows[2][j] = (a - b + c) * 0.5f;
      rows[3][j] = c;
    }
    float* to = prepared + o / kColumns * kColumns * s.in + i * kColumns + o % kColumns;
    const int64_t step = s.in * s.out;
    for (int64_t k = 0; k < 4; ++k) {
      const Vector *r = rows[k], a = r[0], b = r[1], c = r[2];
      *reinterpret_cast<Vector*>(to + 4 * k * step) = a;
      *reinterpret_cast<Vector*>(to + (4 * k + 1) * step) = (a + b + c) * 0.5f;
      *reinterpret_cast<Vector*>(to + (4 * k + 2) * step) = (a - b + c) * 0.5f;
      *reinterpret_cast<Vector*>(to + (4 * k + 3) * step) = c;
    }
  }
}

// A y A' of the pixels of a tile of the result's gradient, for channels from `channel` on.
MYCELIA_WIDE inline void TransformGradient(const float* gradient, const Shape& s, const Tile& tile, int64_t channel,
                                           float* to, int64_t step) {
  Vector rows[4][2];
  for (int64_t j = 0; j < 2; ++j) {
    Vector y[2] = {};
    for (int64_t i = 0; i < 2; ++i) {
      if (tile.row + i >= s.rows || tile.column + j >= s.columns) continue;
      const int64_t at = ((tile.picture * s.rows + tile.row + i) * s.columns + tile.column + j) * s.out + channel;
      y[i] = *reinterpret_cast<const Vector*>(gradient + at);
    }
    rows[0][j] = y[0];
    rows[1][j] = y[0] + y[1];
    rows[2][j] = y[0] - y[1];
    rows[3][j] = -y[1];
  }
  for (int64_t i = 0; i < 4; ++i) {
    const Vector a = rows[i][0], b = rows[i][1];
    float* at = to + 4 * i * step;
    *reinterpret_cast<Vector*>(at) = a;
    *reinterpret_cast<Vector*>(at + step) = a + b;
    *reinterpret_cast<Vector*>(at + 2 * step) = a - b;
    *reinterpret_cast<Vector*>(at + 3 * step) = -b;
  }
}

// G' u G of the sums for channel `i` of the image and 16 channels of the result, to the kernel.
MYCELIA_WIDE inline void KernelOf(const float* sums, const Shape& s, int64_t i, int64_t o, float* kernel, Vector* odd) {
  const int64_t step = s.in * s.out;
  const float* from = sums + i * s.out + o;
  Vector rows[3][4];
  for (int64_t j = 0; j < 4; ++j) {
    Vector u[4];
    for (int64_t k = 0; k < 4; ++k) u[k] = *reinterpret_cast<const Vector*>(from + (4 * k + j) * step);
    rows[0][j] = u[0] + (u[1] + u[2]) * 0.5f;
    rows[1][j] = (u[1] - u[2]) * 0.5f;
    rows[2][j] = (u[1] + u[2]) * 0.5f + u[3];
  }
  float values[9][kLanes];
  for (int64_t k = 0; k < 3; ++k) {
    const Vector* u = rows[k];
    Vector made[3] = {u[0] + (u[1] + u[2]) * 0.5f, (u[1] - u[2]) * 0.5f, (u[1] + u[2]) * 0.5f + u[3]};
    for (int64_t j = 0; j < 3; ++j) {
      *odd += made[j] * 0.0f;
      *reinterpret_cast<Vector*>(values[3 * k + j]) = made[j];
    }
  }
  for (int64_t l = 0; l < kLanes; ++l) {
    float* to = kernel + ((o + l) * s.in + i) * 9;
    for (int64_t k = 0; k < 9; ++k) to[k] = values[k][l];
  }
}

// The gradient of the kernel for channels [first, last) of the result.
MYCELIA_WIDE void KernelPart(const float* gradient, const float* image, const Shape& s, int64_t first, int64_t last,
                             int64_t room, float* scratch, float* sums, float* kernel, Vector* odd) {
  const int64_t tiles = Tiles(s), width = last - first;
  float* pixels = scratch;
  float* results = scratch + kFrequencies * room * s.in;
  for (int64_t begin = 0; begin < tiles; begin += room) {
    const int64_t count = std::min(room, tiles - begin);
    for (int64_t t = 0; t < count; ++t) {
      const Tile tile = TileAt(s, begin + t);
      for (int64_t c = 0; c < s.in; c += kLanes) TransformPixels(image, s, tile, c, pixels + t * s.in + c, room * s.in);
      for (int64_t o = first; o < last; o += kLanes) {
        TransformGradient(gradient, s, tile, o, results + t * width + o - first, room * width);
      }
    }
    for (int64_t f = 0; f < kFrequencies; ++f) {
      for (int64_t o = 0; o < width; o += kColumns) {
        for (int64_t c = 0; c < s.in; c += kSums) {
          StepTransposed(pixels + f * room * s.in + c, s.in, results + f * room * width + o, width, count, begin == 0,
                         sums + (f * s.in + c) * s.out + first + o, s.out);
        }
      }
    }
  }
  for (int64_t i = 0; i < s.in; ++i) {
    for (int64_t o = first; o < last; o += kLanes) KernelOf(sums, s, i, o, kernel, odd);
  }
}

}  // namespace

bool Serves(const Shape& s) {
  return Wide() && s.in % kLanes == 0 && s.out % kColumns == 0 && s.in >= 32 && Tiles(s) >= 2 * kRows;
}

bool ServesKernel(const Shape& s) {
  const bool wasted = 16 * Tiles(s) > 5 * s.batch * s.rows * s.columns;  // over a fifth of the tiles' pixels
  return Serves(s) && !wasted && s.out >= kColumns * omp_get_max_threads();
}

void PrepareKernel(const float* kernel, const Shape& s, bool turned, float* prepared) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < s.in; ++i) PrepareRow(kernel, s, turned, i, prepared);
}

bool Convolve(const float* image, const float* prepared, const Shape& s, const After& after, float* result) {
  const int64_t threads = omp_get_max_threads();
  const int64_t room = BlockTiles(s, threads), tiles = Tiles(s);
  const int64_t each = kFrequencies * room * (s.in + s.out);
  float* scratch = static_cast<float*>(Scratch(3, static_cast<size_t>(threads * each) * sizeof(float)));
  std::atomic<bool> odd_anywhere{false};
#pragma omp parallel num_threads(threads)
  {
    float* pixels = scratch + omp_get_thread_num() * each;
    float* products = pixels + kFrequencies * room * s.in;
    Vector odd{};
#pragma omp for schedule(dynamic)
    for (int64_t begin = 0; begin < tiles; begin += room) {
      Block(image, prepared, s, after, begin, std::min(tiles, begin + room), room, pixels, products, result, &odd);
    }
    if (AnyOdd(odd)) odd_anywhere = true;
  }
  return !odd_anywhere;
}

bool KernelGradient(const float* gradient, const float* image, const Shape& s, float* kernel) {
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), s.out / kColumns);
  const int64_t panels = s.out / kColumns, widest = (panels + threads - 1) / threads * kColumns;
  const int64_t fitting = (1 << 20) / (kFrequencies * 4 * (s.in + widest));
  const int64_t room = std::min(Tiles(s), std::max<int64_t>(48, fitting));
  const int64_t each = kFrequencies * room * (s.in + widest);
  float* scratch = static_cast<float*>(Scratch(3, static_cast<size_t>(threads * each) * sizeof(float)));
  float* sums = static_cast<float*>(Scratch(4, KernelBytes(s)));
  std::atomic<bool> odd_anywhere{false};
#pragma omp parallel num_threads(threads)
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    const int64_t first = panels * me / all * kColumns, last = panels * (me + 1) / all * kColumns;
    Vector odd{};
    if (first < last) KernelPart(gradient, image, s, first, last, room, scratch + me * each, sums, kernel, &odd);
    if (AnyOdd(odd)) odd_anywhere = true;
  }
  return !odd_anywhere;
}

}  // namespace mycelia::winograd
