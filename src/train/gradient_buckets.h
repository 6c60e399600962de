// Sums a group's gradients over the ranks while the backward pass still computes the rest of them. In a capture the
// sums become branches of the graph. The thread that trains and that of its backward pass, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

class DeviceSum;

struct Stretch {
  int64_t first = 0, end = 0;
};

// Which stretches of a flat buffer are summed together, and when. Pure.
class Stretches {
 public:
  Stretches(int64_t elements, int64_t enough) : elements_(elements), enough_(enough) {}

  void begin() { pending_.reset(), due_.clear(); }
  std::vector<Stretch> add(const Stretch& ready);  // what is due now
  std::vector<Stretch> rest();                     // everything that was not due yet

 private:
  int64_t elements_, enough_;
  std::optional<Stretch> pending_;
  std::vector<Stretch> due_;
};

class GradientBuckets {
 public:
  // A sum begins with `enough` elements. Keeps the reference.
  GradientBuckets(DeviceSum& sum, const at::Tensor& gradients, int64_t enough = int64_t{8} << 20);

  void begin() { stretches_.begin(), beside_ = false; }
  // A view into the buffer to which the current stream has nothing more to add.
  void ready(const at::Tensor& gradient);
  void finish();  // the current stream waits for all sums
  void drop();    // after an error: what was forked joins again, so that a capture can end

 private:
  void sum(const std::vector<Stretch>& due);

  DeviceSum& sum_;
  const at::Tensor gradients_;
  Stretches stretches_;
  bool beside_ = false;  // a sum was begun that has not joined
};

}  // namespace myxtts
