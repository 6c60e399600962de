// How libtorch multiplies matrices of floats on the CPU.
#pragma once

namespace myxtts {

// Of the whole process: products by oneDNN instead of MKL, which is several times slower on some processors. They are
// in float, and in bfloat16 with float sums on processors that multiply tiles of it (AMX). Any thread.
void use_fast_cpu_products();
bool uses_fast_cpu_products();

// libtorch's own products while it lives, of the whole process: oneDNN keeps kernels of 0.3 MB for each shape that it
// has multiplied, which is a loss if the shape never comes again. The thread that computes.
class PlainCpuProducts {
 public:
  PlainCpuProducts();
  ~PlainCpuProducts();
  PlainCpuProducts(const PlainCpuProducts&) = delete;
  PlainCpuProducts& operator=(const PlainCpuProducts&) = delete;

 private:
  const bool fast_before_;
};

}  // namespace myxtts
