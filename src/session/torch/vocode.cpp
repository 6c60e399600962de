#include "session/vocode.h"

#include "synth/vocoder_file.h"

namespace myxtts {

std::vector<float> vocode(const std::filesystem::path& vocoder, const MelSpec& spec, const Mel& mel) {
  return waveform_on_cpu(vocoder, spec, mel.values);
}

}  // namespace myxtts
