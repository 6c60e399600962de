// Which of the modes a run is in: decided once, from the settings and the GPUs that there are. Pure.
#pragma once

#include "settings/config.h"

#include <functional>
#include <string>
#include <vector>

namespace myxtts {

// What there is to know of the GPUs; tests have their own.
struct DeviceView {
  int count = 0;
  std::function<std::string(int)> name;
  std::function<bool(int, int)> reaches;  // memory of the second directly
};
DeviceView real_devices();

struct Mode {
  enum class Kind {
    multi_gpu,   // one GPU makes batches, another trains
    single_gpu,  // one does both, from a ring of ready batches
    cpu,         // the same ring, without a GPU
  };
  Kind kind = Kind::cpu;
  int data_device = -1, model_device = -1;  // -1: the CPU
  int processes = 1;                        // of this run that share the machine's memory
  int on_cores = 1;                         // of them that share this one's cores
  bool staged = false;                      // batches cross through pinned host memory, not directly
  std::vector<std::string> warnings;        // one sentence each
};

// The GPUs of one of `processes` that share them equally, numbered from 0 as the settings number them. `first` is the
// number that its own 0 has among all. With fewer GPUs than processes several share one.
DeviceView own_devices(const DeviceView& all, int process, int processes, int& first);

// Multi-GPU when data.data_gpu and data.model_gpu are both given and usable together. Otherwise warns why not, and
// falls back; with data.strict_devices it throws that instead. Throws too when training.device is not there.
Mode choose_mode(const Config& config, const DeviceView& devices);

}  // namespace myxtts
