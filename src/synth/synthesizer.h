// A trained voice: text to samples.
#pragma once

#include "synth/voice_description.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace myxtts {

// Throws Error that names the option that is out of range.
void check_options(const SynthesisOptions& options);

// One thread at a time.
class Synthesizer {
 public:
  // `device` is a GPU's number, or -1. `vocoder` is a file of HiFi-GAN weights; empty: Griffin-Lim.
  Synthesizer(const std::filesystem::path& checkpoint, int device, const std::filesystem::path& vocoder = {});
  ~Synthesizer();
  Synthesizer(const Synthesizer&) = delete;
  Synthesizer& operator=(const Synthesizer&) = delete;

  const VoiceDescription& description() const;
  int sample_rate() const;

  // A long text is spoken sentence by sentence.
  std::vector<float> say(const std::string& text, const SynthesisOptions& options) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
