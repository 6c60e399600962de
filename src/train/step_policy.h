// Precision, fusion and capture: how a step is computed, decided once from the settings and the device. Pure, and no
// libtorch here.
#pragma once

#include "settings/config.h"

namespace myxtts {

struct StepPolicy {
  bool bfloat16 = false;       // weights in bfloat16 with float32 masters; on a GPU unless the level is basic
  bool fast_products = false;  // on a CPU: use_fast_cpu_products, unless the level is basic
  bool fused = true;           // fused kernels; not if every value is inspected
  bool capture = false;  // CUDA graphs, one per static shape; without static shapes nearly every batch would be one
  bool inspect = false;  // every value is checked, on plain operations
};

inline StepPolicy step_policy(const Config& config, bool on_gpu) {
  const TrainingConfig& training = config.training;
  StepPolicy policy;
  policy.inspect = training.enable_eager_debug;
  policy.bfloat16 = on_gpu && training.optimization_level != "basic";
  policy.fast_products = !on_gpu && training.optimization_level != "basic";
  policy.fused = training.enable_fused_kernels && !policy.inspect;
  policy.capture = on_gpu && training.enable_graph_mode && !policy.inspect && config.data.pad_to_fixed_length;
  return policy;
}

}  // namespace myxtts
