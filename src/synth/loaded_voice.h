// A voice in memory, with what makes its mels audible. Immutable.
#pragma once

#include "features/mel_spec.h"
#include "model/voice.h"
#include "synth/vocoder_file.h"
#include "synth/voice_description.h"
#include "synth/voice_runner.h"

#include <filesystem>
#include <memory>

namespace myxtts {

struct LoadedVoice {
  // `vocoder_file` may be empty: the one beside the checkpoint, if there is one.
  LoadedVoice(const std::filesystem::path& checkpoint, at::Device device, const std::filesystem::path& vocoder_file);
  LoadedVoice(const LoadedVoice&) = delete;
  LoadedVoice& operator=(const LoadedVoice&) = delete;

  VoiceDescription description;
  MelSpec mel;
  Voice voice;
  Weights weights;
  VoiceRunner runner;
  std::unique_ptr<WaveformMaker> vocoder;  // null: Griffin-Lim
};

}  // namespace myxtts
