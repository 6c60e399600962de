#include "synth/loaded_voice.h"

#include "synth/voice_file.h"

namespace myxtts {
namespace fs = std::filesystem;
namespace {

// The one beside the voice, where none is named.
fs::path default_vocoder(const fs::path& checkpoint) {
  const fs::path beside = checkpoint.parent_path() / "vocoder.safetensors";
  return fs::exists(beside) ? beside : fs::path();
}

}  // namespace

LoadedVoice::LoadedVoice(const fs::path& checkpoint, at::Device device, const fs::path& vocoder_file)
    : description(read_voice_description(checkpoint)),
      mel(resolve_mel_spec(description.config)),
      voice(description.spec()),
      weights(make_weights(voice.layout(), load_ema_weights(checkpoint, voice.layout()).to(device), false)),
      runner(voice, weights) {
  const fs::path file = vocoder_file.empty() ? default_vocoder(checkpoint) : vocoder_file;
  if (!file.empty()) vocoder = open_vocoder(file, mel, device);
}

}  // namespace myxtts
