#define MEL_KERNEL_NAMESPACE any_cpu
#include "features/cpu/mel_kernel.inc"
