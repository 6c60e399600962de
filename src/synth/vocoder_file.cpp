#include "synth/vocoder_file.h"

#include "artifacts/safetensors.h"
#include "base/error.h"
#include "features/cpu/griffin_lim.h"
#include "model/hifigan.h"
#include "synth/tensor_view.h"
#include "synth/voice_file.h"

#include <map>
#include <utility>

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
  Hifigan(const fs::path& path, const MelSpec& mel, at::Device device) : device_(device) {
    // A vocoder takes the frames that it was trained on, and no others.
    if (mel.hop_length != hifigan_hop) {
      reject_input("synth", "{} makes {} samples per frame, the voice's frames have {}", path.string(), hifigan_hop,
                   mel.hop_length, way_out("leave --vocoder out"));
    }
    const SafetensorsFile file(path);
    file.verify();
    std::map<std::string, at::Tensor> tensors;
    for (const std::string& name : file.names()) {
      tensors[name] = as_tensor(file.tensor(name), path).clone().to(device);
    }
    generator_ = load_hifigan(tensors, mel.n_mels);
  }

  std::vector<float> waveform(const at::Tensor& mel) const override {
    return values_of(hifigan_waveform(generator_, mel.unsqueeze(0).to(device_)));
  }

 private:
  at::Device device_;
  HifiganGenerator generator_;
};

class OwnVocoder : public WaveformMaker {
 public:
  OwnVocoder(const fs::path& path, const VoiceDescription& description, MelSpec mel, at::Device device)
      : mel_(std::move(mel)),
        vocoder_(vocoder_spec(description.config.model.size, mel_, description.mel_mean, description.mel_std)),
        weights_(make_weights(vocoder_.layout(), load_ema_weights(path, vocoder_.layout()).to(device), false)),
        tables_(make_spectrum_tables(frames_of(mel_), device)) {}

  std::vector<float> waveform(const at::Tensor& mel) const override {
    const at::NoGradGuard no_gradients;
    const at::Tensor input = mel.unsqueeze(0).to(weights_.flat.device());
    return values_of(vocoder_.waveform(weights_, tables_, input, griffin_lim_samples(mel_, mel.size(0))));
  }

 private:
  MelSpec mel_;
  Vocoder vocoder_;
  Weights weights_;
  SpectrumTables tables_;
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

std::unique_ptr<WaveformMaker> open_vocoder(const fs::path& path, const MelSpec& mel, at::Device device) {
  const fs::path file = fs::is_directory(path) ? find_voice(path) : path;
  if (!SafetensorsFile(file).metadata().contains("config")) return std::make_unique<Hifigan>(file, mel, device);
  const VoiceDescription description = read_description(file);
  if (description.config.training.target != "vocoder")
    reject_input("synth", "{} is a voice, no vocoder", file.string());
  const MelSpec trained = resolve_mel_spec(description.config);
  check_same_mel(file, trained, mel);
  return std::make_unique<OwnVocoder>(file, description, trained, device);
}

}  // namespace myxtts
