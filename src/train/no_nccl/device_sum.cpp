#include "train/device_sum.h"

#include "base/error.h"

namespace myxtts {

std::string device_sum_library() { return {}; }
std::string make_device_sum_id() { fail("ranks", "this build has no NCCL"); }
std::unique_ptr<DeviceSum> make_device_sum(const std::string& /*id*/, int /*rank*/, int /*count*/, int /*device*/,
                                           double /*timeout_s*/) {
  fail("ranks", "this build has no NCCL");
}

}  // namespace myxtts
