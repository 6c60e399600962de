#include "train/kernel_profile.h"

#include <algorithm>
#include <map>

#include <torch/csrc/autograd/profiler_kineto.h>

namespace myxtts {

std::vector<KernelTime> profile_kernels(const std::function<void()>& work) {
  namespace profiler = torch::profiler::impl;
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  const std::set<profiler::ActivityType> activities = {profiler::ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  work();
  const auto result = torch::autograd::profiler::disableProfiler();
  std::map<std::string, KernelTime> by_name;
  for (const auto& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    KernelTime& kernel = by_name[event.name()];
    kernel.name = event.name();
    ++kernel.launches;
    kernel.ms += static_cast<double>(event.durationNs()) / 1e6;
  }
  std::vector<KernelTime> kernels;
  for (auto& [name, kernel] : by_name) kernels.push_back(std::move(kernel));
  std::ranges::sort(kernels, std::greater(), &KernelTime::ms);
  return kernels;
}

}  // namespace myxtts
