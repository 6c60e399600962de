#include "model/cpu_products.h"

#include <ATen/Context.h>

namespace myxtts {
namespace {

// libtorch's word for products by oneDNN.
void set_fast(bool fast) { at::globalContext().setFloat32MatmulPrecision(fast ? "medium" : "highest"); }

}  // namespace

void use_fast_cpu_products() { set_fast(true); }

PlainCpuProducts::PlainCpuProducts() : fast_before_(uses_fast_cpu_products()) { set_fast(false); }
PlainCpuProducts::~PlainCpuProducts() { set_fast(fast_before_); }

bool uses_fast_cpu_products() {
  return at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM;
}

}  // namespace myxtts
