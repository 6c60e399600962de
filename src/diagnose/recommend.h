// What to change, by the numbers of a diagnosis: nothing where the run is healthy.
#pragma once

#include "diagnose/diagnosis.h"

#include <string>
#include <vector>

namespace myxtts {

struct Config;

// `stall_ms`: what the consumer waits in a stall.
std::vector<Recommendation> recommend(const Diagnosis& found, const PipelineSetup& setup, double stall_ms);

// The config with those that apply written into it, as YAML. Throws Error when one of them is not a setting.
std::string apply_recommendations(const Config& config, const std::vector<Recommendation>& recommendations);

}  // namespace myxtts
