#define MEL_KERNEL_NAMESPACE avx2
#include "features/cpu/griffin_lim_kernel.inc"
