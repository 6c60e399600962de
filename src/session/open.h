// From settings to batches: what every command that feeds a corpus does first, with the checks that belong to it.
#pragma once

#include "corpus/corpus.h"
#include "loader/feed.h"
#include "plan/batch_plan.h"
#include "plan/shapes.h"
#include "session/listener.h"
#include "settings/config.h"

#include <memory>
#include <string>

namespace myxtts {

// The mode, with a warning if it is not the one that was asked for. Before anything is opened.
Mode choose_devices(const Config& config, const SessionListener& listener);

// Opens the corpus, making its index first if needed, with progress and a line that gives the reason. data.vocabulary
// is read; without data.val_data a share is held out.
Corpus open_corpus_at(const std::string& where, const Config& config, PrepareOptions options,
                      const SessionListener& listener);

// A corpus and which of its clips make which batch.
struct PlannedCorpus {
  Corpus corpus;
  ShapePlan shapes;
  BatchPlan plan;
};

enum class CorpusPart { training, held_out };

// data.train_data, planned: whole clips, or the crops that a vocoder is trained on. Throws Error in the name of
// `command` if no corpus is named, if none of its clips can be used, if there are too few for a batch, or if so many
// ranks cannot share the batches equally.
PlannedCorpus open_planned_corpus(const char* command, const Config& config, CorpusPart part,
                                  const SessionListener& listener, bool crops = false, int64_t ranks = 1);

// The source of batches, after the start-up lines; what is tuned later is reported as well. Keeps a reference to the
// corpus.
std::unique_ptr<BatchSource> open_batches(Feed feed, const Config& config, const PlannedCorpus& planned,
                                          const SessionListener& listener);

}  // namespace myxtts
