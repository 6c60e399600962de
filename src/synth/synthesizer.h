// A trained voice: text to samples.
#pragma once

#include "audio/clip.h"
#include "synth/speech.h"
#include "synth/voice_description.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace myxtts {

// Throws Error that names the option that is out of range.
void check_options(const SynthesisOptions& options);

// Who speaks, and in which language. Empty: the voice's default speaker, and data.language.
struct Speaking {
  std::vector<float> speaker = {};  // its vector
  std::string language = {};
};

// One thread at a time.
class Synthesizer {
 public:
  // `device` is a GPU's number, or -1. `vocoder` is a file of ours or of HiFi-GAN; empty: the
  // vocoder.safetensors beside the checkpoint, or Griffin-Lim.
  Synthesizer(const std::filesystem::path& checkpoint, int device, const std::filesystem::path& vocoder = {});
  ~Synthesizer();
  Synthesizer(const Synthesizer&) = delete;
  Synthesizer& operator=(const Synthesizer&) = delete;

  const VoiceDescription& description() const;
  int sample_rate() const;

  // Vectors of a voice with speakers; the others throw Error. `name` is a speaker of the voice, or a .speaker file that
  // was made with it. Of clips the mean is taken.
  std::vector<float> speaker_vector(const std::string& name) const;
  std::vector<float> reference_vector(const std::vector<std::filesystem::path>& clips) const;
  std::vector<float> reference_vector(const Clip& clip) const;
  // The same for all checkpoints of a run: for speaker files.
  std::string fingerprint() const;

  // Speaks a few tokens, because the first time is slow. On a GPU it also captures what sentences of up to ten seconds
  // need, which takes seconds.
  void warm_up() const;

  // Speaks while it is asked for more; borrows this voice. Several may be under way, one step at a time.
  Speech begin(const std::string& text, const SynthesisOptions& options, const Speaking& as = {}) const;

  // The whole of it: the same samples. `times` are added to, where they are wanted.
  std::vector<float> say(const std::string& text, const SynthesisOptions& options, const Speaking& as = {},
                         SpeakingTimes* times = nullptr) const;

 private:
  std::unique_ptr<const LoadedVoice> voice_;
};

}  // namespace myxtts
