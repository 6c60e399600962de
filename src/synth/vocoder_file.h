// A vocoder as a file: one that this program trained, or a HiFi-GAN generator.
#pragma once

#include "features/mel_spec.h"
#include "model/hifigan.h"
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
  // Frames on either side that a sample depends on.
  virtual int64_t context_frames() const = 0;
  // On a GPU: captures what mels of up to so many frames need.
  virtual void warm_up(int64_t /*frames*/) const {}
};

// The samples of frames [first, end) of `frames`, made with the frames around them that they depend on: parts in order
// are the samples of waveform(). The last part also has the samples after the last frame.
std::vector<float> waveform_part(const WaveformMaker& maker, const MelSpec& mel, const at::Tensor& frames,
                                 int64_t first, int64_t end);

// A file, or a folder of checkpoints. It must have been trained on the convention `mel`, which is the voice's.
std::unique_ptr<WaveformMaker> open_vocoder(const std::filesystem::path& path, const MelSpec& mel, at::Device device);

// Whether a file is of a HiFi-GAN generator, and not of this program; and the generator, whose frames must be those of
// `mel`.
bool is_hifigan(const std::filesystem::path& file);
HifiganGenerator read_hifigan(const std::filesystem::path& file, const MelSpec& mel, at::Device device);

// What a vocoder makes of one mel, [frames, n_mels] in `values`.
std::vector<float> waveform_on_cpu(const std::filesystem::path& vocoder, const MelSpec& mel,
                                   const std::vector<float>& values);

}  // namespace myxtts
