// What would make a better voice of a corpus whose clips can all be used: more speech, a better recording, texts that
// fit. Nothing is rejected for it. Any thread.
#pragma once

#include "corpus/corpus.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

// Levels of a clip in dB below full scale, and what is at its ends.
struct ClipLevels {
  double speech_db = 0;           // mean of the loudest tenth of its frames
  double noise_db = 0;            // mean of the quietest tenth
  int clipped = 0;                // runs of samples at full scale
  double lead_s = 0, tail_s = 0;  // silence
};
ClipLevels measure_levels(std::span<const float> samples, int sample_rate);

struct Advice {
  std::string code;     // for scripts: too_little_speech, quiet, noisy, clipping, silence_at_ends, ...
  std::string finding;  // the sentence
  std::string way_out;
  std::vector<std::string> clips;  // IDs of those it is about, the worst first; empty: of the whole corpus
  size_t examined = 0;             // clips that were looked at
};

// Texts are compared for all clips; sound for at most `max_decoded` of them, evenly spread.
struct AdviceOptions {
  size_t max_decoded = 400;
  size_t threads = 1;
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};
std::vector<Advice> advise(const Corpus& corpus, const DataConfig& data, const AdviceOptions& options);

}  // namespace myxtts
