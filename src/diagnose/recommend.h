// Recommends settings from the numbers of a diagnosis; none if the run is healthy. Pure functions; any thread.
#pragma once

#include "diagnose/diagnosis.h"

#include <string>
#include <vector>

namespace myxtts {

struct Config;

// `stall_ms`: mean wait of the consumer per stall.
std::vector<Recommendation> recommend(const Diagnosis& found, const PipelineSetup& setup, double stall_ms);

// Returns the config as YAML with all applicable recommendations. Throws Error if one is not a setting.
std::string apply_recommendations(const Config& config, const std::vector<Recommendation>& recommendations);

}  // namespace myxtts
