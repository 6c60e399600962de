#include "session/torch/train_session.h"

#include "base/counted.h"
#include "session/open.h"
#include "session/torch/batch_size.h"

#include <optional>
#include <set>

namespace myxtts {
namespace {

void report_corpus(const std::string& where, const CorpusIndex& index, const SessionListener& listener) {
  const size_t rejected = index.summary().rejected.size();
  if (rejected > 0) {
    listener.alert(fmt::format("{} of {} not used; `myxtts prepare {}` lists them with their reasons",
                               counted(rejected, "clip"), rejected + index.size(), where));
  }
}

// Validated on with the training corpus's vocabulary.
std::optional<Corpus> open_validation_corpus(const Config& config, const Corpus& training,
                                             const SessionListener& listener) {
  if (config.data.val_data.empty()) return std::nullopt;
  const std::set<char32_t> symbols = training.vocabulary.symbols();
  PrepareOptions options;
  options.symbols = &symbols;
  Config other = config;
  other.data.vocabulary.clear();
  return open_corpus_at(config.data.val_data, other, options, listener);
}

}  // namespace

TrainSummary train_session(Config config, bool reset, const SessionListener& listener, const TrainListener& trained,
                           const std::atomic<bool>& stop, const std::function<void()>& begin) {
  if (config.training.optimization_level == "experimental") {
    listener.alert("--optimization-level experimental is the same as enhanced: nothing is on trial");
  }
  const Mode mode = choose_devices(config, listener);
  const PlannedCorpus planned = open_planned_corpus("train", config, CorpusPart::training, listener);
  report_corpus(config.data.train_data, planned.corpus.index, listener);
  const std::optional<Corpus> validation = open_validation_corpus(config, planned.corpus, listener);
  settle_batch_size(config, planned.corpus, mode, reset, listener);
  begin();
  return train({config, planned.corpus, validation ? &*validation : nullptr, mode, reset}, trained, stop);
}

}  // namespace myxtts
