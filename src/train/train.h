// A training run from its first step, or from where it stopped, to its end. No libtorch here.
#pragma once

#include "corpus/corpus.h"
#include "loader/mode.h"
#include "settings/config.h"
#include "synth/voice_description.h"
#include "train/metrics.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

namespace myxtts {

class Ranks;

struct TrainInput {
  const Config& config;
  const Corpus& corpus;
  const Corpus* validation = nullptr;        // null: what the corpus holds out
  Mode mode;                                 // where batches are made, and where the model is
  bool reset = false;                        // put an earlier run aside and begin anew
  const VoiceDescription& voice;             // what is trained; the corpus is numbered as it says
  std::filesystem::path from = {};           // a voice whose weights a new run begins with
  const VoiceDescription* origin = nullptr;  // that voice
  std::filesystem::path teacher = {};  // a voice on whose mels a vocoder is trained; the corpus is numbered as it says
  Ranks* ranks = nullptr;              // that train together; null: this process alone
};

// How far a run is.
struct TrainProgress {
  int64_t step = 0, total = 0;
  double seconds_left = 0;    // by the speed of this session, validations and samples included
  double distortion = 0;      // cepstral, of the newest validation; NaN if there was none
  const StepMetrics& logged;  // the newest; its step is 0 if there are none
};

// What a run reports while it trains; called from the thread that trains.
struct TrainListener {
  std::function<void(const std::string&)> say, warn;  // also from other threads
  std::function<void(const TrainProgress&)> step, logged;
};

struct TrainSummary {
  struct Steps {
    int64_t done = 0, total = 0;
    int64_t this_session = 0;
    int64_t captures = 0, retraces = 0, skipped = 0;
  } steps;
  struct Losses {
    double first = 0, last = 0, best_validation = 0;
  } losses;
  double seconds = 0;     // of this session
  double input_wait = 0;  // share of them
  bool interrupted = false, stopped_early = false;
  std::filesystem::path checkpoint, report;
  int rank = 0;  // of others than 0 the files are rank 0's
};

// Returns after the last step, or once `stop` is set and the step in hand is done and saved.
TrainSummary train(const TrainInput& input, const TrainListener& listener, const std::atomic<bool>& stop);

}  // namespace myxtts
