#include "train/device_sum.h"

#include "base/error.h"
#include "device/device.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <dlfcn.h>

namespace myxtts {
namespace {

// What is used of NCCL's ABI: its header is not among libtorch's. The numbers are those of every NCCL 2 since 2.13.
using Communicator = struct NcclCommunicator*;
using Result = int;  // 0: success
struct UniqueId {
  char bytes[128];
};
constexpr int float32 = 7, float64 = 8, bfloat16 = 9;  // ncclDataType_t
constexpr int sum_of_ranks = 0, mean_of_ranks = 4;     // ncclRedOp_t

struct Nccl {
  Result (*version)(int*) = nullptr;
  Result (*unique_id)(UniqueId*) = nullptr;
  Result (*init_rank)(Communicator*, int, UniqueId, int) = nullptr;
  Result (*all_reduce)(const void*, void*, size_t, int, int, Communicator, StreamHandle) = nullptr;
  Result (*abort)(Communicator) = nullptr;
  const char* (*error_text)(Result) = nullptr;
  const char* (*last_error)(Communicator) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// The one that libtorch has loaded, or has inside; otherwise the system's.
const Nccl* nccl() {
  static const std::optional<Nccl> found = []() -> std::optional<Nccl> {
    const bool loaded = ::dlsym(RTLD_DEFAULT, "ncclGetVersion") != nullptr;
    void* const library = loaded ? RTLD_DEFAULT : ::dlopen("libnccl.so.2", RTLD_NOW);
    if (!loaded && library == nullptr) return std::nullopt;
    Nccl all;
    const bool whole =
        find(library, "ncclGetVersion", all.version) && find(library, "ncclGetUniqueId", all.unique_id) &&
        find(library, "ncclCommInitRank", all.init_rank) && find(library, "ncclAllReduce", all.all_reduce) &&
        find(library, "ncclCommAbort", all.abort) && find(library, "ncclGetErrorString", all.error_text) &&
        find(library, "ncclGetLastError", all.last_error);
    return whole ? std::optional(all) : std::nullopt;
  }();
  return found ? &*found : nullptr;
}

void check(Result result, const char* what) {
  if (result == 0) return;
  const char* const detail = nccl()->last_error(nullptr);
  const std::string more = detail != nullptr && *detail != '\0' ? fmt::format(" ({})", detail) : std::string();
  fail("ranks", "NCCL {}: {}{}", what, nccl()->error_text(result), more, way_out("NCCL_DEBUG=INFO logs more"));
}

int type_of(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kFloat:
      return float32;
    case at::kDouble:
      return float64;
    case at::kBFloat16:
      return bfloat16;
    default:
      fail("ranks", "values of this type are not summed on a GPU");
  }
}

class NcclSum : public DeviceSum {
 public:
  // For one rank NCCL would do nothing for a sum in place. The mean is the same and is a kernel, so that what it costs
  // can be measured.
  NcclSum(Communicator communicator, int count, int device)
      : communicator_(communicator),
        operation_(count > 1 ? sum_of_ranks : mean_of_ranks),
        device_(static_cast<c10::DeviceIndex>(device)),
        beside_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_)),
        forked_(device),
        joined_(device) {}

  ~NcclSum() override {
    abort();
    constexpr std::chrono::seconds patience(10);
    if (ended_.valid()) ended_.wait_for(patience);  // a device that hangs is left to the end of the process
  }
  NcclSum(const NcclSum&) = delete;
  NcclSum& operator=(const NcclSum&) = delete;

  void sum(const at::Tensor& values) override { queue(values, c10::cuda::getCurrentCUDAStream(device_).stream()); }

  void sum_beside(const at::Tensor& values) override {
    forked_.record(c10::cuda::getCurrentCUDAStream(device_).stream());
    forked_.hold_up(beside_.stream());
    queue(values, beside_.stream());
  }

  void join() override {
    joined_.record(beside_.stream());
    joined_.hold_up(c10::cuda::getCurrentCUDAStream(device_).stream());
  }

  // It sets flags that the device polls, then waits until the graphs that hold sums are destroyed: hence the thread.
  void abort() noexcept override {
    try {
      // A sum that is being queued may hang together with the others: then without the lock.
      constexpr std::chrono::seconds patience(2);
      const std::unique_lock lock(mutex_, patience);
      const Communicator communicator = communicator_.exchange(nullptr);
      if (communicator == nullptr) return;
      std::promise<void> ended;
      ended_ = ended.get_future();
      std::thread([communicator, ended = std::move(ended)]() mutable {
        nccl()->abort(communicator);
        ended.set_value();
      }).detach();
    } catch (const std::exception&) {  // no thread can be started: the process ends with its error
    }
  }

 private:
  void queue(const at::Tensor& values, StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    const Communicator communicator = communicator_;
    if (communicator == nullptr) fail("ranks", "the sums over ranks have ended");
    const c10::cuda::CUDAGuard guard(device_);
    void* const data = values.mutable_data_ptr();
    const auto elements = static_cast<size_t>(values.numel());
    check(nccl()->all_reduce(data, data, elements, type_of(values), operation_, communicator, stream),
          "cannot sum over the ranks");
  }

  std::timed_mutex mutex_;
  std::atomic<Communicator> communicator_;
  const int operation_;
  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream beside_;
  DeviceEvent forked_, joined_;
  std::future<void> ended_;
};

}  // namespace

std::string device_sum_library() {
  int version = 0;
  if (nccl() == nullptr || nccl()->version(&version) != 0) return {};
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string make_device_sum_id() {
  UniqueId id{};
  check(nccl()->unique_id(&id), "has no identity for the ranks");
  return {id.bytes, sizeof(id.bytes)};
}

std::unique_ptr<DeviceSum> make_device_sum(const std::string& id, int rank, int count, int device, double timeout_s) {
  UniqueId unique{};
  if (id.size() != sizeof(unique.bytes)) fail("ranks", "an identity of NCCL has {} bytes", id.size());
  std::memcpy(unique.bytes, id.data(), id.size());
  // NCCL waits for the other ranks without end; a thread of its own waits for it.
  std::promise<Communicator> made;
  std::future<Communicator> met = made.get_future();
  std::thread([=, made = std::move(made)]() mutable {
    try {
      const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
      Communicator communicator = nullptr;
      check(nccl()->init_rank(&communicator, count, unique, rank), "cannot connect the GPUs of the ranks");
      made.set_value(communicator);
    } catch (...) {
      made.set_exception(std::current_exception());
    }
  }).detach();
  if (met.wait_for(std::chrono::duration<double>(timeout_s)) != std::future_status::ready) {
    fail("ranks", "NCCL did not connect the GPUs of {} ranks within {:.0f} s", count, timeout_s,
         way_out("NCCL_DEBUG=INFO logs which network it takes; NCCL_SOCKET_IFNAME names another"));
  }
  return std::make_unique<NcclSum>(met.get(), count, device);
}

}  // namespace myxtts
