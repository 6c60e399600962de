#include "python/mel_maker.h"

#include "audio/resample.h"
#include "base/error.h"
#include "python/dlpack.h"
#include "python/options.h"
#include "python/without_gil.h"

#include <algorithm>

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

// What a file's decoder would have given.
std::vector<float> decode(const SampleRows& samples, int64_t row) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(samples.data);
  const int64_t sample_bytes = bytes_per_sample(samples.format);
  std::vector<float> decoded(static_cast<size_t>(samples.samples));
  for (int64_t i = 0; i < samples.samples; ++i) {
    decoded[static_cast<size_t>(i)] =
        sample_value(samples.format, bytes + (row * samples.row_stride + i * samples.sample_stride) * sample_bytes);
  }
  return decoded;
}

Array mel_array(int64_t rows, int64_t frames, int n_mels, int device, std::byte* data) {
  return {"mel", DType::float32, {rows, frames, n_mels}, device, data};
}

}  // namespace

// Tables and scratch memory on one GPU, made anew if a call needs more.
struct MelMaker::OnGpu {
  static constexpr int64_t clips_at_once = 64;
  static constexpr size_t kept_rates = 4;
  std::mutex mutex;  // one call at a time
  MelGpuLimits limits{0, 0, 0, {}};
  std::unique_ptr<MelGpu> mel;
  DeviceBuffer clips;

  // For this call alone if the largest of each, of this call and those before, is much more than any of them needs.
  void make_room(const MelSpec& spec, int device, int64_t rows, int64_t samples, int64_t frames, int sample_rate) {
    MelGpuLimits room = limits;
    const int count = static_cast<int>(std::min(rows, clips_at_once));
    room.clips = std::max(room.clips, count);
    room.samples = std::max(room.samples, samples), room.frames = std::max(room.frames, frames);
    const int64_t needed = std::max(limits.clips * limits.samples, count * samples);
    if (room.clips * room.samples > 2 * needed) room.clips = count, room.samples = samples, room.frames = frames;
    if (std::ranges::find(room.sample_rates, sample_rate) == room.sample_rates.end()) {
      room.sample_rates.push_back(sample_rate);
      if (room.sample_rates.size() > kept_rates) room.sample_rates.erase(room.sample_rates.begin());
    }
    if (mel && room == limits) return;
    mel.reset();
    limits = {0, 0, 0, {}};
    if (clips.size_bytes() == 0) clips = DeviceBuffer(device, clips_at_once * sizeof(GpuClip));
    mel = std::make_unique<MelGpu>(spec, device, room);
    limits = std::move(room);
  }
};

SharedArray MelMaker::compute(const SampleRows& samples, int sample_rate) {
  if (sample_rate < 1000 || sample_rate > 768'000) {
    reject_input("mel", "sample_rate is {}", sample_rate, way_out("it must be from 1000 to 768000"));
  }
  if (samples.samples == 0) reject_input("mel", "the array has no samples");
  return samples.device < 0 ? on_cpu(samples, sample_rate) : on_gpu(samples, sample_rate);
}

SharedArray MelMaker::on_cpu(const SampleRows& samples, int sample_rate) {
  std::unique_ptr<MelCpu> mel;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) mel = std::move(idle_.back()), idle_.pop_back();
  }
  if (mel == nullptr) mel = std::make_unique<MelCpu>(spec_);
  const ResampleFilter filter(sample_rate, spec_.sample_rate);
  const int64_t frames =
      spec_.frames(static_cast<int64_t>(filter.output_length(static_cast<uint64_t>(samples.samples))));
  const auto row_values = static_cast<size_t>(frames * spec_.n_mels);
  const auto memory = std::make_shared<std::vector<float>>(static_cast<size_t>(samples.rows) * row_values);
  for (int64_t row = 0; row < samples.rows; ++row) {
    const std::vector<float> clip = resample(decode(samples, row), sample_rate, spec_.sample_rate);
    mel->compute(clip, std::span(*memory).subspan(static_cast<size_t>(row) * row_values, row_values));
  }
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(mel));
  }
  auto* const data = reinterpret_cast<std::byte*>(memory->data());
  return {mel_array(samples.rows, frames, spec_.n_mels, -1, data), memory};
}

SharedArray MelMaker::on_gpu(const SampleRows& samples, int sample_rate) {
  if (samples.sample_stride != 1) {
    reject_input("mel", "the samples do not lie one after another", way_out("make the tensor contiguous"));
  }
  std::shared_ptr<OnGpu> gpu;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<OnGpu>& found = on_gpus_[samples.device];
    if (found == nullptr) found = std::make_shared<OnGpu>();
    gpu = found;
  }
  const KeepCurrentDevice keep(samples.device);
  const ResampleFilter filter(sample_rate, spec_.sample_rate);
  const auto resampled = static_cast<int64_t>(filter.output_length(static_cast<uint64_t>(samples.samples)));
  const int64_t frames = spec_.frames(resampled);
  const auto row_bytes = static_cast<size_t>(frames * spec_.n_mels) * sizeof(float);
  const auto memory = std::make_shared<DeviceBuffer>(samples.device, static_cast<size_t>(samples.rows) * row_bytes);
  auto* const out = static_cast<std::byte*>(memory->data());
  const std::lock_guard lock(gpu->mutex);
  gpu->make_room(spec_, samples.device, samples.rows, resampled, frames, sample_rate);
  DeviceEvent done(samples.device);
  for (int64_t first = 0; first < samples.rows && frames > 0; first += OnGpu::clips_at_once) {
    const int64_t count = std::min(OnGpu::clips_at_once, samples.rows - first);
    std::vector<GpuClip> clips;
    for (int64_t row = first; row < first + count; ++row) {
      clips.push_back({static_cast<uint64_t>(row * samples.row_stride * bytes_per_sample(samples.format)),
                       static_cast<uint32_t>(samples.samples), sample_rate, 1, samples.format});
    }
    gpu->clips.upload(std::as_bytes(std::span(clips)));
    gpu->mel->run(samples.data, static_cast<const GpuClip*>(gpu->clips.data()), static_cast<int>(count), false,
                  out + static_cast<size_t>(first) * row_bytes, frames, MelType::float32, 0.0F, nullptr);
  }
  // The samples are the caller's: they may be gone, and their memory used again, as soon as this returns.
  done.record(nullptr);
  done.wait();
  return {mel_array(samples.rows, frames, spec_.n_mels, samples.device, out), memory};
}

namespace {

SampleFormat format_of(nb::dlpack::dtype type) {
  if (type == nb::dtype<float>()) return SampleFormat::float_32;
  if (type == nb::dtype<double>()) return SampleFormat::float_64;
  if (type == nb::dtype<int16_t>()) return SampleFormat::pcm_16;
  reject_input("mel", "samples of this type are not taken", way_out("give float32, float64 or int16"));
}

// -1: the host can read it.
int device_of(int type, int number) {
  if (type == dlpack::cuda) return number;
  if (type == dlpack::cpu || type == dlpack::cuda_host || type == dlpack::cuda_managed) return -1;
  reject_input("mel", "the samples are on a device of another kind ({} in DLPack)", type,
               way_out("give them in host memory or on a CUDA device"));
}

// A tensor on a GPU is asked for in the order of the default stream, on which the mel is computed.
nb::object exported_by(const nb::object& given) {
  if (!nb::hasattr(given, "__dlpack_device__")) return given;
  const auto device = nb::cast<nb::tuple>(given.attr("__dlpack_device__")());
  if (nb::cast<int>(device[0]) != dlpack::cuda) return given;
  return given.attr("__dlpack__")(nb::arg("stream") = 1);
}

SharedArray compute(MelMaker& self, const nb::object& given, int sample_rate) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(exported_by(given), array)) {
    reject_input("mel", "a {} is not an array", nb::cast<std::string>(nb::str(given.type().attr("__name__"))),
                 way_out("give samples as a NumPy array, a tensor, or anything with a buffer or DLPack"));
  }
  if (array.ndim() < 1 || array.ndim() > 2) {
    reject_input("mel", "the array has {} dimensions", array.ndim(), way_out("give [samples] or [clips, samples]"));
  }
  SampleRows samples;
  samples.data = static_cast<const std::byte*>(array.data());
  samples.device = device_of(array.device_type(), array.device_id());
  samples.format = format_of(array.dtype());
  const size_t last = array.ndim() - 1;
  samples.samples = static_cast<int64_t>(array.shape(last)), samples.sample_stride = array.stride(last);
  if (last == 1) samples.rows = static_cast<int64_t>(array.shape(0)), samples.row_stride = array.stride(0);
  SharedArray mel;
  {
    const WithoutGil released;
    mel = self.compute(samples, sample_rate);
  }
  if (last == 0) mel.array.dims.erase(mel.array.dims.begin());
  return mel;
}

nb::dict spec_dict(const MelSpec& spec) {
  nb::dict dict;
  dict["name"] = spec.name;
  for (const auto& [key, value] : spec.values()) dict[key.c_str()] = value;
  return dict;
}

}  // namespace

void bind_mel(nb::module_& module) {
  nb::class_<MelMaker>(module, "MelMaker", "What mel and MelSpectrogram call; any thread.")
      .def(
          "__init__",
          [](MelMaker* self, const std::string& config, const Keywords& settings) {
            new (self) MelMaker(resolve_mel_spec(config_of(config, settings, Command::all)));
          },
          nb::arg("config"), nb::arg("settings"))
      .def("compute", compute, nb::arg("samples"), nb::arg("sample_rate"),
           "Log-mel [frames, n_mels] of [samples], or [clips, frames, n_mels] of [clips, samples].")
      .def_prop_ro("sample_rate", [](const MelMaker& self) { return self.spec().sample_rate; })
      .def_prop_ro("n_fft", [](const MelMaker& self) { return self.spec().n_fft; })
      .def_prop_ro("win_length", [](const MelMaker& self) { return self.spec().win_length; })
      .def_prop_ro("hop_length", [](const MelMaker& self) { return self.spec().hop_length; })
      .def_prop_ro("n_mels", [](const MelMaker& self) { return self.spec().n_mels; })
      .def(
          "frames", [](const MelMaker& self, int64_t samples) { return self.spec().frames(samples); },
          nb::arg("samples"), "Frames of a clip of so many samples at the rate of the convention.")
      .def("__repr__", [](const MelMaker& self) { return self.spec().to_string(); });
  module.def(
      "mel_presets",
      [] {
        nb::dict presets;
        for (const MelSpec& spec : mel_presets()) presets[spec.name.c_str()] = spec_dict(spec);
        return presets;
      },
      nb::sig("def mel_presets() -> dict[str, dict[str, str]]"), "Every preset with its values.");
}

}  // namespace myxtts
