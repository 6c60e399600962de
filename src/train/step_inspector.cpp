#include "train/step_inspector.h"

#include "base/error.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <fmt/ranges.h>

namespace myxtts {
namespace {

std::string described(const std::string& name, const at::Tensor& value) {
  return fmt::format("{} [{}]", name, fmt::join(value.sizes(), ", "));
}

void check_finite(const std::string& name, const at::Tensor& value) {
  if (at::isfinite(value).all().item<bool>()) return;
  const int64_t bad = (~at::isfinite(value)).sum().item<int64_t>();
  fail("train", "{} is not finite: {} of {} values", described(name, value), bad, value.numel());
}

}  // namespace

void StepInspector::check(const std::string& name, const at::Tensor& value) {
  check_finite(name, value);
  last_ = described(name, value);
}

void StepInspector::check_gradients(const ParameterLayout& layout, const at::Tensor& gradients) {
  const std::vector<at::Tensor> views = layout.views(gradients);
  for (size_t i = 0; i < views.size(); ++i) check_finite("the gradient of " + layout.specs()[i].name, views[i]);
}

void StepInspector::watch(const std::function<void()>& work) {
  last_ = "the batch";
  try {
    work();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    fail("train", "after {}: {}", last_, error.what_without_backtrace());
  }
}

}  // namespace myxtts
