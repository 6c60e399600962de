#include "model/cpu_products.h"

#include <ATen/Context.h>

namespace myxtts {

void use_fast_cpu_products() { at::globalContext().setFloat32MatmulPrecision("medium"); }

}  // namespace myxtts
