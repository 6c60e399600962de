// A trained voice that speaks: text to samples.
#pragma once

#include "train/checkpoint.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace myxtts {

// Cleaned and numbered as the texts that the voice was trained on. Throws Error naming what the voice cannot say.
std::vector<uint16_t> tokens_of_text(const VoiceDescription& voice, const std::string& text);

struct SpeechOptions {
  SpeakOptions speak;
  double pause_s = 0.2;  // between sentences
  std::filesystem::path vocoder;  // HiFi-GAN weights; empty: Griffin-Lim
};

class Speaker {
 public:
  Speaker(const std::filesystem::path& checkpoint, at::Device device);

  const VoiceDescription& description() const { return description_; }
  int sample_rate() const { return mel_.sample_rate; }

  // A long text is spoken sentence by sentence.
  std::vector<float> say(const std::string& text, const SpeechOptions& options) const;

 private:
  VoiceDescription description_;
  MelSpec mel_;
  Voice voice_;
  Weights weights_;
};

}  // namespace myxtts
