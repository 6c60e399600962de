// Sums over ranks on their GPUs, queued on a stream like a kernel, so that a captured graph can hold them. NCCL does
// it, which comes with libtorch and is looked for when the program runs: `nccl/` with a libtorch that has CUDA,
// `no_nccl/` without.
#pragma once

#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Every rank queues the same sums in the same order. The thread that trains and that of its backward pass, one at a
// time; abort() any thread.
class DeviceSum {
 public:
  virtual ~DeviceSum() = default;

  // In place, in the type of the values, which are contiguous: on the current stream.
  virtual void sum(const at::Tensor& values) = 0;

  // The same on a stream of its own, once the current stream has come to this point.
  virtual void sum_beside(const at::Tensor& values) = 0;
  virtual void join() = 0;  // the current stream waits for all that are beside it

  // What waits on the device for other ranks ends, with values that nobody may use; later sums throw. Returns at once.
  virtual void abort() noexcept = 0;
};

std::string device_sum_library();  // "NCCL 2.28.9"; empty: there is none
std::string make_device_sum_id();  // of one rank, for all of them

// All ranks call this. Graphs that hold its sums are destroyed before it is.
std::unique_ptr<DeviceSum> make_device_sum(const std::string& id, int rank, int count, int device, double timeout_s);

}  // namespace myxtts
