#include "loader/mode.h"

#include "base/counted.h"
#include "base/error.h"
#include "device/device.h"

#include <algorithm>

#include <fmt/format.h>

namespace myxtts {
namespace {

// Why there is no Multi-GPU mode although it was asked for; empty when there is. Each ends with the way out.
std::string obstacle(const Config& config, const DeviceView& devices) {
  const DataConfig& data = config.data;
  const auto gpus = [&] { return counted(static_cast<uint64_t>(devices.count), "GPU"); };
  if (config.training.device == "cpu") {
    return "training.device is cpu, but data.data_gpu or data.model_gpu is set; leave out --device or the two GPUs";
  }
  if (devices.count == 0) {
    return "data.data_gpu or data.model_gpu is set, but there is no usable GPU; leave out --data-gpu and --model-gpu";
  }
  if (data.model_gpu < 0) {
    return fmt::format("data.data_gpu is {}, but data.model_gpu is not set; give --model-gpu as well", data.data_gpu);
  }
  if (data.data_gpu < 0) {
    return fmt::format("data.model_gpu is {}, but data.data_gpu is not set; give --data-gpu as well", data.model_gpu);
  }
  if (data.data_gpu >= devices.count) {
    return fmt::format("data.data_gpu is {}, but this machine has {}, counted from 0; give another --data-gpu",
                       data.data_gpu, gpus());
  }
  if (data.model_gpu >= devices.count) {
    return fmt::format("data.model_gpu is {}, but this machine has {}, counted from 0; give another --model-gpu",
                       data.model_gpu, gpus());
  }
  if (!data.use_native_loading) {
    return "data.data_gpu has no use with data.use_native_loading: false, which makes batches on the CPU; set it to "
           "true";
  }
  if (!data.prefetch_to_gpu) {
    return "data.data_gpu has no use with data.prefetch_to_gpu: false, which makes batches on the CPU; leave out "
           "--no-prefetch-to-gpu";
  }
  const int from = static_cast<int>(data.data_gpu), to = static_cast<int>(data.model_gpu);
  if (!devices.reaches(from, to) && !data.staged_peer_copy) {
    return fmt::format(
        "the GPUs of data.data_gpu ({}) and data.model_gpu ({}) cannot reach each other; set data.staged_peer_copy: "
        "true to go through host memory",
        from, to);
  }
  return {};
}

// Where the model is when there is one device for everything.
int only_device(const Config& config, const DeviceView& devices) {
  const std::string& device = config.training.device;
  if (device == "cpu" || (device == "auto" && devices.count == 0)) return -1;
  const bool given = config.data.model_gpu >= 0 && config.data.model_gpu < devices.count;
  if (device == "auto") return given ? static_cast<int>(config.data.model_gpu) : 0;
  const int number = device == "cuda" ? 0 : std::stoi(device.substr(device.find(':') + 1));
  if (number >= devices.count) {
    reject_setting("device", "training.device", "is {}, but this machine has {} usable GPUs", device, devices.count,
                   way_out("use --device cpu or auto"));
  }
  return number;
}

}  // namespace

DeviceView real_devices() { return {device_count(), device_name, can_access_peer}; }

DeviceView own_devices(const DeviceView& all, int process, int processes, int& first) {
  first = 0;
  if (processes < 2 || all.count == 0) return all;
  const int count = std::max(1, all.count / processes);
  first = process * count % all.count;
  return {count, [all, first](int device) { return all.name(first + device); },
          [all, first](int from, int to) { return all.reaches(first + from, first + to); }};
}

Mode choose_mode(const Config& config, const DeviceView& devices) {
  const DataConfig& data = config.data;
  const bool asked = data.data_gpu >= 0 || data.model_gpu >= 0;
  const std::string why_not = asked ? obstacle(config, devices) : std::string();
  if (!why_not.empty() && data.strict_devices) reject_input("devices", "{}", why_not);
  Mode mode;
  if (asked && why_not.empty()) {
    mode.kind = Mode::Kind::multi_gpu;
    mode.data_device = static_cast<int>(data.data_gpu), mode.model_device = static_cast<int>(data.model_gpu);
    // On one card nothing has to be staged; there it is a way to try it out.
    const bool direct = devices.reaches(mode.data_device, mode.model_device) && mode.data_device != mode.model_device;
    mode.staged = data.staged_peer_copy && !direct;
    return mode;
  }
  mode.data_device = mode.model_device = only_device(config, devices);
  mode.kind = mode.model_device < 0 ? Mode::Kind::cpu : Mode::Kind::single_gpu;
  if (!why_not.empty()) {
    const std::string fallback = mode.kind == Mode::Kind::cpu
                                     ? std::string("on the CPU")
                                     : fmt::format("in the Single-GPU mode on cuda:{}", mode.model_device);
    mode.warnings.push_back(fmt::format("{}; it runs {} instead", why_not, fallback));
  }
  return mode;
}

}  // namespace myxtts
