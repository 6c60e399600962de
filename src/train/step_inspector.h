// For --enable-eager-debug: looks at everything that a step computes, and puts names and shapes into errors.
#pragma once

#include "model/parameters.h"
#include "model/trunk.h"

#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

namespace myxtts {

class StepInspector {
 public:
  // Throws an Error that names the value where it is not finite.
  void see(const std::string& name, const at::Tensor& value);
  Inspect eye() {
    return [this](const std::string& name, const at::Tensor& value) { see(name, value); };
  }

  // The same of each parameter's gradient.
  static void see_gradients(const ParameterLayout& layout, const at::Tensor& gradients);

  // Does the work, and says of an error of libtorch's where it was: after what was seen last.
  void watch(const std::function<void()>& work);

 private:
  std::string last_ = "the batch";
};

}  // namespace myxtts
