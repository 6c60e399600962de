#include "session/vocode.h"

#include "synth/vocoder_file.h"

#include <ATen/ATen.h>

namespace myxtts {

std::vector<float> vocode(const std::filesystem::path& vocoder, const MelSpec& spec, const Mel& mel) {
  const at::Tensor frames = at::tensor(mel.values).view({mel.frames, mel.n_mels});
  return open_vocoder(vocoder, spec, at::kCPU)->waveform(frames);
}

}  // namespace myxtts
