// What a GPU spends its time on: every kernel that ran during some work, by name.
#pragma once

#include "train/step_bench.h"

#include <functional>
#include <vector>

namespace myxtts {

// `work` ends when the GPU has done it. The longest first.
std::vector<KernelTime> profile_kernels(const std::function<void()>& work);

}  // namespace myxtts
