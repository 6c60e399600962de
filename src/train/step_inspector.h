// For --enable-eager-debug: checks every value that a step computes, and puts names and shapes into errors.
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
  void check(const std::string& name, const at::Tensor& value);
  Inspect callback() {
    return [this](const std::string& name, const at::Tensor& value) { check(name, value); };
  }

  // The same of each parameter's gradient.
  static void check_gradients(const ParameterLayout& layout, const at::Tensor& gradients);

  // Does the work, and says of an error of libtorch's where it was: after what was seen last.
  void watch(const std::function<void()>& work);

 private:
  std::string last_ = "the batch";
};

}  // namespace myxtts
