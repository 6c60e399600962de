// CUDA without its headers: devices, memory, streams, events and timing. `no_cuda/` implements it in builds without
// CUDA: it reports no devices and throws one clear Error. Unless noted, calls block and any thread may make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

struct CUstream_st;

namespace myxtts {

using StreamHandle = CUstream_st*;  // a cudaStream_t; null is the default stream

int device_count();
std::string device_name(int device);
std::string device_bus_id(int device);        // PCI bus ID; CUDA and NVML number GPUs differently
bool can_access_peer(int device, int other);  // copies between them bypass the host

struct DeviceMemory {
  uint64_t free_bytes = 0, total_bytes = 0;
};
DeviceMemory device_memory(int device);

// "cuda:N" -> N. Throws Error if the text is malformed or the GPU does not exist.
int parse_device(const std::string& text);

// Owns memory on one device. Movable, not copyable.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(int device, size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  void* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

  // Both block until the copy is done.
  void upload(std::span<const std::byte> from);
  void download(std::span<std::byte> into) const;

 private:
  int device_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Owns host memory, aligned to a cache line; `pinned` allows asynchronous copies to a GPU. Movable, not copyable.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(size_t bytes, bool pinned);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t alignment{64};

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  bool pinned_ = false;
};

// Copies from device memory after all work on the default stream. The calling thread's current device stays.
void download(int device, const void* from, std::span<std::byte> into);

// Measures device time between two points of a stream with CUDA events.
class DeviceTimer {
 public:
  explicit DeviceTimer(int device);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  void start(StreamHandle stream = nullptr);
  double stop_ms(StreamHandle stream = nullptr);  // blocks until the device reaches this point

 private:
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

// A CUDA event without timing.
class DeviceEvent {
 public:
  explicit DeviceEvent(int device);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  void record(StreamHandle stream);
  void hold_up(StreamHandle stream) const;  // what is queued on `stream` from now on waits for this point
  bool is_complete() const;
  void wait() const;

 private:
  void* event_ = nullptr;
};

// Makes `device` the calling thread's current one for a scope. The one before is current again at the end, unless
// nothing has used it: to make it current would create its context, which takes memory. Nothing on the CPU, -1.
class KeepCurrentDevice {
 public:
  explicit KeepCurrentDevice(int device);
  ~KeepCurrentDevice();
  KeepCurrentDevice(const KeepCurrentDevice&) = delete;
  KeepCurrentDevice& operator=(const KeepCurrentDevice&) = delete;

 private:
  int before_ = -1;
};

// The calling thread may from now on allocate, register and wait while another thread captures a CUDA graph: in the
// default mode any such call of any thread invalidates the capture.
void relax_stream_capture();

// Measures how long a stream is busy with consecutive pieces of work, in device time. begin() blocks while `ahead`
// pieces are pending, which limits how far the host runs ahead. One thread.
class BusyClock {
 public:
  struct Time {
    int64_t pieces = 0;
    double busy_ms = 0;
    double all_ms = 0;  // including the gaps between pieces
  };

  explicit BusyClock(int device, size_t ahead = 3);
  ~BusyClock();
  BusyClock(const BusyClock&) = delete;
  BusyClock& operator=(const BusyClock&) = delete;

  void begin(StreamHandle stream);
  void end(StreamHandle stream);
  Time take();   // totals of the pieces that ended since the last call
  void pause();  // excludes the gap before the next piece

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Memory bandwidth of the device, bytes read plus written per second: upper bound of a memory-bound kernel.
double measure_copy_bytes_per_s(int device);

// PCIe bandwidth from pinned host memory to the device.
double measure_upload_bytes_per_s(int device);

}  // namespace myxtts
