// What a verdict needs to know of the settings, the feed that they make, and the corpus.
#pragma once

#include "diagnose/diagnosis.h"
#include "loader/feed.h"
#include "settings/config.h"

namespace myxtts {

PipelineSetup setup_of(const Config& config, const Feed& feed, const Corpus& corpus);

// Of the clips' files, or of their places in shards.
uint64_t bytes_of(const Corpus& corpus);

}  // namespace myxtts
