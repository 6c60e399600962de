// How libtorch multiplies matrices of floats on the CPU.
#pragma once

namespace myxtts {

// Of the whole process: products by oneDNN instead of MKL, which is several times slower on some processors. They are
// in float, and in bfloat16 with float sums on processors that multiply tiles of it (AMX). Any thread.
void use_fast_cpu_products();

}  // namespace myxtts
