#define MEL_KERNEL_NAMESPACE any_cpu
#include "features/cpu/griffin_lim_kernel.inc"
