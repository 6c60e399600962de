// Marks a function that both the CPU and a CUDA kernel call, so that the two backends share one definition.
#pragma once

#ifdef __CUDACC__
#define MYXTTS_HOST_DEVICE __host__ __device__
#else
#define MYXTTS_HOST_DEVICE
#endif
