#include "train/gradient_buckets.h"

#include "model/parameters.h"
#include "train/device_sum.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace myxtts {

std::vector<Stretch> Stretches::add(const Stretch& ready) {
  std::vector<Stretch> due;
  if (pending_ && ready.end == pending_->first) {
    pending_->first = ready.first;
  } else if (pending_ && ready.first == pending_->end) {
    pending_->end = ready.end;
  } else {
    if (pending_) due.push_back(*pending_);
    pending_ = ready;
  }
  if (pending_->end - pending_->first >= enough_) {
    due.push_back(*pending_);
    pending_.reset();
  }
  due_.insert(due_.end(), due.begin(), due.end());
  return due;
}

std::vector<Stretch> Stretches::rest() {
  std::ranges::sort(due_, {}, &Stretch::first);
  std::vector<Stretch> rest;
  int64_t at = 0;
  for (const Stretch& stretch : due_) {
    if (stretch.first > at) rest.push_back({at, stretch.first});
    at = stretch.end;
  }
  if (at < elements_) rest.push_back({at, elements_});
  return rest;
}

GradientBuckets::GradientBuckets(DeviceSum& sum, const at::Tensor& gradients, int64_t enough)
    : sum_(sum), gradients_(gradients), stretches_(gradients.numel(), enough) {}

// With the gap behind it, which is zero.
void GradientBuckets::ready(const at::Tensor& gradient) {
  constexpr int64_t step = ParameterLayout::alignment;
  const int64_t first = gradient.storage_offset() - gradients_.storage_offset();
  sum(stretches_.add({first, std::min(first + (gradient.numel() + step - 1) / step * step, gradients_.numel())}));
}

void GradientBuckets::sum(const std::vector<Stretch>& due) {
  for (const Stretch& stretch : due) {
    beside_ = true;
    sum_.sum_beside(gradients_.narrow(0, stretch.first, stretch.end - stretch.first));
  }
}

void GradientBuckets::finish() {
  sum(stretches_.rest());
  drop();
}

void GradientBuckets::drop() {
  if (!beside_) return;
  beside_ = false;
  sum_.join();
}

}  // namespace myxtts
