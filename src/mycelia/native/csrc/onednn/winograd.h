// Convolutions by 3 x 3 kernels in 2.25 times fewer products than there are terms.
#pragma once

#include "onednn.h"

namespace mycelia::winograd {

// What is done to the result; a null pointer leaves a step out.
struct After {
  const float* bias = nullptr;   // for each channel
  const float* gain = nullptr;   // for each channel, with `shift`
  const float* shift = nullptr;
  const float* image = nullptr;  // that is added
  bool relu = false;
};

// A convolution of float32 images with their channels last, by steps of one.
struct Shape {
  int64_t batch, height, width, in;  // the image
  int64_t rows, columns, out;        // the result
  int64_t top, left;                 // padding before
};

// Whether this way is faster than oneDNN's on this processor.
bool Serves(const Shape& shape);
bool ServesKernel(const Shape& shape);

// Bytes of a kernel in the form that `Convolve` takes.
inline size_t KernelBytes(const Shape& shape) { return static_cast<size_t>(16 * shape.in * shape.out) * sizeof(float); }

// The kernel (out, in, 3, 3) in that form. `turned`: of the kernel (in, out, 3, 3) of the convolution whose image's
// gradient is computed, read from its end.
void PrepareKernel(const float* kernel, const Shape& shape, bool turned, float* prepared);

// Whether all of the result is finite: where it is not, NaN and infinity may stand at neighbours, too, and the
// convolution has to be computed otherwise.
bool Convolve(const float* image, const float* prepared, const Shape& shape, const After& after, float* result);

// The gradient (out, in, 3, 3) of the kernel; whether it is finite.
bool KernelGradient(const float* gradient, const float* image, const Shape& shape, float* kernel);

}  // namespace mycelia::winograd
