// A trained voice that speaks: text to samples.
#pragma once

#include "train/voice_description.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace myxtts {

// A checkpoint, or the best one of a folder of checkpoints, or else its newest.
std::filesystem::path find_voice(const std::filesystem::path& file_or_folder);

class Speaker {
 public:
  // `device` is a GPU's number, or -1. `vocoder` is a file of HiFi-GAN weights; empty: Griffin-Lim.
  Speaker(const std::filesystem::path& checkpoint, int device, const std::filesystem::path& vocoder = {});
  ~Speaker();
  Speaker(const Speaker&) = delete;
  Speaker& operator=(const Speaker&) = delete;

  const VoiceDescription& description() const;
  int sample_rate() const;

  // A long text is spoken sentence by sentence.
  std::vector<float> say(const std::string& text, const SpeakOptions& options) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
