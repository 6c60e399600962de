#include "device/device.h"

#include "device/cuda/check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include <dlfcn.h>

namespace myxtts {

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string device_name(int device) {
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::string device_bus_id(int device) {
  std::array<char, 32> id{};
  CUDA_CHECK(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device));
  return id.data();
}

bool can_access_peer(int device, int other) {
  int can = 0;
  return device == other || (cudaDeviceCanAccessPeer(&can, device, other) == cudaSuccess && can == 1);
}

DeviceMemory device_memory(int device) {
  CUDA_CHECK(cudaSetDevice(device));
  DeviceMemory memory;
  CUDA_CHECK(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes));
  return memory;
}

int parse_device(const std::string& text) {
  int device = text == "cuda" ? 0 : -1;
  if (text.starts_with("cuda:")) {
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data() + 5, end, device).ptr != end) device = -1;
  }
  if (device < 0) reject_input("device", "'{}' is not a device", text, way_out("use cpu or cuda:N"));
  if (device >= device_count())
    reject_input("device", "there is no {}", text, way_out("this machine has {} usable GPUs", device_count()));
  return device;
}

DeviceBuffer::DeviceBuffer(int device, size_t bytes) : device_(device), bytes_(bytes) {
  CUDA_CHECK(cudaSetDevice(device));
  if (bytes > 0) CUDA_CHECK(cudaMalloc(&data_, bytes));
}

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void DeviceBuffer::upload(std::span<const std::byte> from) {
  CUDA_CHECK(cudaMemcpy(data_, from.data(), std::min(from.size(), bytes_), cudaMemcpyHostToDevice));
}

void DeviceBuffer::download(std::span<std::byte> into) const {
  CUDA_CHECK(cudaMemcpy(into.data(), data_, std::min(into.size(), bytes_), cudaMemcpyDeviceToHost));
}

HostBuffer::HostBuffer(size_t bytes, bool pinned) : bytes_(bytes), pinned_(pinned) {
  if (bytes == 0) return;
  if (pinned) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, bytes));
    data_ = static_cast<std::byte*>(memory);
  } else {
    data_ = static_cast<std::byte*>(::operator new(bytes, alignment));
  }
}

HostBuffer::~HostBuffer() {
  if (pinned_) {
    cudaFreeHost(data_);
  } else {
    ::operator delete(data_, alignment);
  }
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept { *this = std::move(other); }

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(pinned_, other.pinned_);
  return *this;
}

void download(int device, const void* from, std::span<std::byte> into) {
  const KeepCurrentDevice keep(device);
  CUDA_CHECK(cudaMemcpy(into.data(), from, into.size(), cudaMemcpyDeviceToHost));
}

DeviceTimer::DeviceTimer(int device) {
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&begin_)));
  CUDA_CHECK(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&end_)));
}

DeviceTimer::~DeviceTimer() {
  cudaEventDestroy(static_cast<cudaEvent_t>(begin_));
  cudaEventDestroy(static_cast<cudaEvent_t>(end_));
}

void DeviceTimer::start(StreamHandle stream) { CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(begin_), stream)); }

double DeviceTimer::stop_ms(StreamHandle stream) {
  CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(end_), stream));
  CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(end_)));
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(begin_), static_cast<cudaEvent_t>(end_)));
  return ms;
}

// A ring of event pairs; `first` is the oldest unread.
struct BusyClock::State {
  static constexpr size_t size = 256;
  std::array<cudaEvent_t, size> begins{}, ends{};
  std::array<bool, size> after_pause{};
  size_t first = 0, next = 0, ahead = 0;
  bool paused = true;
  Time ended;

  double between(cudaEvent_t from, cudaEvent_t to) const {
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, from, to));
    return ms;
  }

  void read_first() {
    const size_t piece = first % size;
    ++ended.pieces;
    ended.busy_ms += between(begins[piece], ends[piece]);
    ended.all_ms += between(after_pause[piece] ? begins[piece] : ends[(first + size - 1) % size], ends[piece]);
    ++first;
  }
};

DeviceEvent::DeviceEvent(int device) {
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(&event_), cudaEventDisableTiming));
}

DeviceEvent::~DeviceEvent() { cudaEventDestroy(static_cast<cudaEvent_t>(event_)); }

void DeviceEvent::record(StreamHandle stream) { CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(event_), stream)); }

void DeviceEvent::hold_up(StreamHandle stream) const {
  CUDA_CHECK(cudaStreamWaitEvent(stream, static_cast<cudaEvent_t>(event_)));
}

bool DeviceEvent::is_complete() const {
  const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event_));
  if (status != cudaErrorNotReady) CUDA_CHECK(status);
  return status == cudaSuccess;
}

void DeviceEvent::wait() const { CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(event_))); }

namespace {

// By the driver, which the runtime has loaded by then: the runtime itself cannot be asked.
bool has_primary_context(int device) {
  using GetState = int (*)(int device, unsigned* flags, int* active);
  static const auto get_state =
      reinterpret_cast<GetState>(::dlsym(::dlopen("libcuda.so.1", RTLD_LAZY), "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 0;
  return get_state != nullptr && get_state(device, &flags, &active) == 0 && active != 0;
}

}  // namespace

// An error shows at the next call.
KeepCurrentDevice::KeepCurrentDevice(int device) {
  if (device < 0 || cudaGetDevice(&before_) != cudaSuccess) return;
  if (before_ != device) cudaSetDevice(device);
}

KeepCurrentDevice::~KeepCurrentDevice() {
  int now = before_;
  if (before_ < 0 || cudaGetDevice(&now) != cudaSuccess || now == before_) return;
  if (has_primary_context(before_)) cudaSetDevice(before_);
}

void relax_stream_capture() {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
}

BusyClock::BusyClock(int device, size_t ahead) : state_(std::make_unique<State>()) {
  state_->ahead = std::clamp<size_t>(ahead, 1, State::size - 1);  // the piece before the first is needed as well
  CUDA_CHECK(cudaSetDevice(device));
  for (auto* events : {&state_->begins, &state_->ends}) {
    for (cudaEvent_t& event : *events) CUDA_CHECK(cudaEventCreate(&event));
  }
}

BusyClock::~BusyClock() {
  for (auto* events : {&state_->begins, &state_->ends}) {
    for (const cudaEvent_t event : *events) cudaEventDestroy(event);
  }
}

void BusyClock::begin(StreamHandle stream) {
  while (state_->next - state_->first >= state_->ahead) {
    CUDA_CHECK(cudaEventSynchronize(state_->ends[state_->first % State::size]));
    state_->read_first();
  }
  state_->after_pause[state_->next % State::size] = std::exchange(state_->paused, false);
  CUDA_CHECK(cudaEventRecord(state_->begins[state_->next % State::size], stream));
}

void BusyClock::end(StreamHandle stream) {
  CUDA_CHECK(cudaEventRecord(state_->ends[state_->next % State::size], stream));
  ++state_->next;
}

void BusyClock::pause() { state_->paused = true; }

BusyClock::Time BusyClock::take() {
  while (state_->first < state_->next && cudaEventQuery(state_->ends[state_->first % State::size]) == cudaSuccess) {
    state_->read_first();
  }
  return std::exchange(state_->ended, {});
}

double measure_upload_bytes_per_s(int device) {
  constexpr size_t bytes = size_t{1} << 28;
  const DeviceBuffer into(device, bytes);
  void* from = nullptr;
  CUDA_CHECK(cudaMallocHost(&from, bytes));
  std::memset(from, 1, bytes);
  DeviceTimer timer(device);
  std::vector<double> times;
  for (int repeat = 0; repeat < 12; ++repeat) {
    timer.start();
    CUDA_CHECK(cudaMemcpyAsync(into.data(), from, bytes, cudaMemcpyHostToDevice));
    times.push_back(timer.stop_ms());
  }
  CUDA_CHECK(cudaFreeHost(from));
  std::nth_element(times.begin(), times.begin() + 6, times.end());
  return static_cast<double>(bytes) / (times[6] * 1e-3);
}

double measure_copy_bytes_per_s(int device) {
  constexpr size_t bytes = size_t{1} << 30;
  const DeviceBuffer from(device, bytes), into(device, bytes);
  DeviceTimer timer(device);
  std::vector<double> times;
  CUDA_CHECK(cudaMemset(from.data(), 1, bytes));
  for (int repeat = 0; repeat < 12; ++repeat) {
    timer.start();
    CUDA_CHECK(cudaMemcpyAsync(into.data(), from.data(), bytes, cudaMemcpyDeviceToDevice));
    times.push_back(timer.stop_ms());
  }
  std::nth_element(times.begin(), times.begin() + 6, times.end());
  return 2.0 * bytes / (times[6] * 1e-3);
}

}  // namespace myxtts
