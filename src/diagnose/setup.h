// What a verdict needs to know of the settings, the feed that they make, and the corpus.
#pragma once

#include "base/config.h"
#include "diagnose/diagnosis.h"
#include "pipeline/feed.h"

namespace myxtts {

PipelineSetup setup_of(const Config& config, const Feed& feed, const Corpus& corpus);

// Of the clips' files, or of their places in shards.
uint64_t bytes_of(const Corpus& corpus);

}  // namespace myxtts
