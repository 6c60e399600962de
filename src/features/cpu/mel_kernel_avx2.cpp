#define MEL_KERNEL_NAMESPACE avx2
#include "features/cpu/mel_kernel.inc"
