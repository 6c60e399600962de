#include "synth/vocoder_file.h"

#include "artifacts/safetensors.h"
#include "base/error.h"
#include "features/cpu/griffin_lim.h"
#include "model/hifigan.h"
#include "synth/tensor_view.h"
#include "synth/vocoder_runner.h"
#include "synth/voice_file.h"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

std::vector<float> values_of(const at::Tensor& wave) {
  const at::Tensor plain = wave.reshape({-1}).to(at::kCPU, at::kFloat).contiguous();
  return {plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel()};
}

class Hifigan : public WaveformMaker {
 public:
  Hifigan(const fs::path& path, const MelSpec& mel, at::Device device)
      : device_(device), generator_(read_hifigan(path, mel, device)) {}

  std::vector<float> waveform(const at::Tensor& mel) const override {
    return values_of(hifigan_waveform(generator_, mel.unsqueeze(0).to(device_)));
  }
  int64_t context_frames() const override { return hifigan_context_frames; }

 private:
  at::Device device_;
  HifiganGenerator generator_;
};

class OwnVocoder : public WaveformMaker {
 public:
  OwnVocoder(const fs::path& path, const VoiceDescription& description, const MelSpec& mel, at::Device device)
      : runner_(make_runner(path,
                            vocoder_spec(description.config.model.size, mel, description.mel_mean, description.mel_std),
                            mel, device)) {}

  std::vector<float> waveform(const at::Tensor& mel) const override { return runner_->waveform(mel); }
  int64_t context_frames() const override { return runner_->vocoder().context_frames(); }

 private:
  static std::unique_ptr<VocoderRunner> make_runner(const fs::path& path, const VocoderSpec& spec, const MelSpec& mel,
                                                    at::Device device) {
    return std::make_unique<VocoderRunner>(spec, mel, load_ema_weights(path, Vocoder(spec).layout()), device);
  }

  std::unique_ptr<VocoderRunner> runner_;
};

void check_same_mel(const fs::path& path, const MelSpec& vocoder, const MelSpec& voice) {
  const auto theirs = vocoder.values(), ours = voice.values();
  for (size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i] == ours[i]) continue;
    reject_input("synth", "{} was trained on mels with {} {}, the voice's have {}", path.string(), ours[i].first,
                 theirs[i].second, ours[i].second, way_out("train it with the voice's mel_preset"));
  }
}

}  // namespace

Frames frames_of(const MelSpec& spec) { return {spec.n_fft, spec.hop_length, spec.win_length, spec.first_sample()}; }

VocoderSpec vocoder_spec(std::string_view size, const MelSpec& mel, double mel_mean, double mel_std) {
  return {vocoder_size(size), mel.n_mels, frames_of(mel), mel_mean, mel_std};
}

std::vector<float> waveform_part(const WaveformMaker& maker, const MelSpec& mel, const at::Tensor& frames,
                                 int64_t first, int64_t end) {
  const int64_t count = frames.size(0), context = maker.context_frames(), hop = mel.hop_length;
  const int64_t heard_first = std::max<int64_t>(0, first - context), heard_end = std::min(count, end + context);
  std::vector<float> wave = maker.waveform(frames.narrow(0, heard_first, heard_end - heard_first));
  if (end < count) wave.resize(static_cast<size_t>((end - heard_first) * hop));
  wave.erase(wave.begin(), wave.begin() + (first - heard_first) * hop);
  return wave;
}

bool is_hifigan(const fs::path& file) { return !SafetensorsFile(file).metadata().contains("config"); }

HifiganGenerator read_hifigan(const fs::path& path, const MelSpec& mel, at::Device device) {
  // A vocoder takes the frames that it was trained on, and no others.
  if (mel.hop_length != hifigan_hop) {
    reject_input("synth", "{} makes {} samples per frame, the voice's frames have {}", path.string(), hifigan_hop,
                 mel.hop_length, way_out("leave --vocoder out"));
  }
  const SafetensorsFile file(path);
  file.verify();
  std::map<std::string, at::Tensor> tensors;
  for (const std::string& name : file.names()) tensors[name] = as_tensor(file.tensor(name), path).clone().to(device);
  file.check_whole();
  return load_hifigan(tensors, mel.n_mels);
}

std::unique_ptr<WaveformMaker> open_vocoder(const fs::path& path, const MelSpec& mel, at::Device device) {
  const fs::path file = fs::is_directory(path) ? find_voice(path) : path;
  if (is_hifigan(file)) return std::make_unique<Hifigan>(file, mel, device);
  const VoiceDescription description = read_description(file);
  if (description.config.training.target != "vocoder")
    reject_input("synth", "{} is a voice, no vocoder", file.string());
  const MelSpec trained = resolve_mel_spec(description.config);
  check_same_mel(file, trained, mel);
  return std::make_unique<OwnVocoder>(file, description, trained, device);
}

std::vector<float> waveform_on_cpu(const fs::path& vocoder, const MelSpec& mel, const std::vector<float>& values) {
  return open_vocoder(vocoder, mel, at::kCPU)->waveform(at::tensor(values).view({-1, mel.n_mels}));
}

}  // namespace myxtts
