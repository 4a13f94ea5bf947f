// relu in place. oneDNN has one that follows a product, but it makes a NaN zero.
#pragma once

#include "onednn.h"

namespace mycelia {

// Of a buffer of float32 or bfloat16; in parallel.
void Relu(const ffi::AnyBuffer& buffer);

}  // namespace mycelia
