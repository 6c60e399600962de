// What every command that opens a corpus shares: its options and what it says meanwhile.
#pragma once

#include "cli/commands.h"
#include "corpus/corpus.h"
#include "loader/feed.h"

#include <memory>
#include <string>

namespace myxtts {

// The mode, with a warning where it is not the one that was asked for. Before anything is opened.
Mode choose_mode_loudly(const Config& config, const Console& console);

// The source of batches, after the start-up lines; what is tuned later is said as well.
std::unique_ptr<BatchSource> open_feed_loudly(Feed feed, const Config& config, const Corpus& corpus,
                                              const BatchPlan& plan, const Console& console);

// Opens it, making its index first where needed, with a progress bar and a line that says why.
Corpus open_corpus_loudly(const std::string& where, const Config& config, PrepareOptions options,
                          const Console& console);

}  // namespace myxtts
