// The little that the rest of the program needs of a GPU without knowing CUDA: which there are, memory on one, time on
// one. Where no CUDA was found at build time there are none, and `no_cuda/` throws one clear sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct CUstream_st;

namespace myxtts {

using StreamHandle = CUstream_st*;  // a cudaStream_t; null is the default stream

int device_count();
std::string device_name(int device);
std::string device_bus_id(int device);  // where it sits: CUDA and the driver number GPUs differently
bool can_reach(int device, int other);  // memory of the other by copies that do not pass through the host

struct DeviceMemory {
  uint64_t free_bytes = 0, total_bytes = 0;
};
DeviceMemory device_memory(int device);

// "cuda:N" -> N. Throws Error when the text is something else or there is no such GPU.
int parse_device(const std::string& text);

// Memory on one device. Owns it; may be moved, not copied.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(int device, size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  void* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

  // Both wait until the copy is done.
  void upload(std::span<const std::byte> from);
  void download(std::span<std::byte> into) const;

 private:
  int device_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Host memory that does not move: page-locked where `pinned` is true, so that a GPU copies from it by itself. Owns it;
// may be moved, not copied.
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
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  bool pinned_ = false;
};

// From device memory, once the default stream is done with all it was given.
void download(int device, const void* from, std::span<std::byte> into);

// Time between two points of a stream, measured on the device.
class DeviceTimer {
 public:
  explicit DeviceTimer(int device);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  void start(StreamHandle stream = nullptr);
  double stop_ms(StreamHandle stream = nullptr);  // waits

 private:
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

// How long a stream was busy with pieces of work that come one after another. Nothing waits for it, but a piece that is
// begun while more than a few hundred others have not ended.
class BusyClock {
 public:
  explicit BusyClock(int device);
  ~BusyClock();
  BusyClock(const BusyClock&) = delete;
  BusyClock& operator=(const BusyClock&) = delete;

  void begin(StreamHandle stream);
  void end(StreamHandle stream);
  double take_ms();  // of the pieces that have ended since the last call

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bytes read plus bytes written a second by a copy within the device: the limit of whatever only moves memory.
double measure_copy_bytes_per_s(int device);

// Of a copy from pinned host memory to the device.
double measure_upload_bytes_per_s(int device);

}  // namespace myxtts
