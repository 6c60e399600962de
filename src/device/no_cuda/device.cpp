#include "device/device.h"

#include "base/error.h"

#include <utility>

namespace myxtts {
namespace {

[[noreturn]] void missing() {
  reject_input("device", "this build has no CUDA",
               way_out("install the CUDA toolkit and rebuild, or use --device cpu"));
}

}  // namespace

int device_count() { return 0; }
std::string device_name(int) { missing(); }
std::string device_bus_id(int) { missing(); }
bool can_access_peer(int, int) { missing(); }
DeviceMemory device_memory(int) { missing(); }
int parse_device(const std::string&) { missing(); }
DeviceBuffer::DeviceBuffer(int, size_t) { missing(); }
DeviceBuffer::~DeviceBuffer() = default;
DeviceBuffer::DeviceBuffer(DeviceBuffer&&) noexcept = default;
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&&) noexcept = default;
void DeviceBuffer::upload(std::span<const std::byte>) { missing(); }
void DeviceBuffer::download(std::span<std::byte>) const { missing(); }
HostBuffer::HostBuffer(size_t bytes, bool pinned) : bytes_(bytes) {
  if (pinned) missing();
  if (bytes > 0) data_ = static_cast<std::byte*>(::operator new(bytes, alignment));
}
HostBuffer::~HostBuffer() { ::operator delete(data_, alignment); }
HostBuffer::HostBuffer(HostBuffer&& other) noexcept { *this = std::move(other); }
HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
void download(int, const void*, std::span<std::byte>) { missing(); }
DeviceTimer::DeviceTimer(int) { missing(); }
DeviceTimer::~DeviceTimer() = default;
void DeviceTimer::start(StreamHandle) { missing(); }
double DeviceTimer::stop_ms(StreamHandle) { missing(); }

struct BusyClock::State {};
DeviceEvent::DeviceEvent(int) { missing(); }
DeviceEvent::~DeviceEvent() = default;
void DeviceEvent::record(StreamHandle) { missing(); }
void DeviceEvent::hold_up(StreamHandle) const { missing(); }
bool DeviceEvent::is_complete() const { missing(); }
void DeviceEvent::wait() const { missing(); }

KeepCurrentDevice::KeepCurrentDevice(int) {}
KeepCurrentDevice::~KeepCurrentDevice() = default;
void relax_stream_capture() {}

BusyClock::BusyClock(int, size_t) { missing(); }
BusyClock::~BusyClock() = default;
void BusyClock::begin(StreamHandle) { missing(); }
void BusyClock::end(StreamHandle) { missing(); }
BusyClock::Time BusyClock::take() { missing(); }
void BusyClock::pause() { missing(); }
double measure_copy_bytes_per_s(int) { missing(); }
double measure_upload_bytes_per_s(int) { missing(); }

}  // namespace myxtts
