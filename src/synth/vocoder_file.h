// A vocoder as a file: one that this program trained, or a HiFi-GAN generator.
#pragma once

#include "features/mel_spec.h"
#include "model/vocoder.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace myxtts {

Frames frames_of(const MelSpec& spec);
VocoderSpec vocoder_spec(std::string_view size, const MelSpec& mel, double mel_mean, double mel_std);

// Makes waveforms of mels. Any number of threads.
class WaveformMaker {
 public:
  virtual ~WaveformMaker() = default;
  // `mel` is float [frames, n_mels] on the CPU.
  virtual std::vector<float> waveform(const at::Tensor& mel) const = 0;
};

// A file, or a folder of checkpoints. It must have been trained on the convention `mel`, which is the voice's.
std::unique_ptr<WaveformMaker> open_vocoder(const std::filesystem::path& path, const MelSpec& mel, at::Device device);

}  // namespace myxtts
