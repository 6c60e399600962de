// `diagnose bottleneck`: feeds a corpus to the model, or to a consumer of a given speed, and finds what limits.
#pragma once

#include "diagnose/diagnosis.h"
#include "diagnose/observation.h"
#include "session/open.h"

#include <cstdint>
#include <string>

namespace myxtts {

struct BottleneckOptions {
  int64_t batches = 50;
  double consumer_ms = -1;  // duration of a step; -1: the model's own steps
  double seconds = 20;      // end by then, with fewer batches if each takes long
  std::string run_folder;   // a finished run whose step times to use; empty: none

  // Throws Error that names the flag.
  void validate() const;
};

struct BottleneckRun {
  PlannedCorpus planned;
  Feed feed;
  Observation observation;
  PipelineSetup setup;
  Diagnosis diagnosis;
};

BottleneckRun observe_bottleneck(const BottleneckOptions& options, const Config& config,
                                 const SessionListener& listener);

}  // namespace myxtts
