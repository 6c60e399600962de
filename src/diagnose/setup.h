// Collects the settings, feed and corpus properties that a verdict needs.
#pragma once

#include "diagnose/diagnosis.h"
#include "loader/feed.h"
#include "settings/config.h"

namespace myxtts {

PipelineSetup setup_of(const Config& config, const Feed& feed, const Corpus& corpus);

// Total bytes of the clips, in files or in shards.
uint64_t bytes_of(const Corpus& corpus);

}  // namespace myxtts
