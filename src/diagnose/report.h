// A diagnosis as text and as JSON.
#pragma once

#include "diagnose/diagnosis.h"
#include "diagnose/observation.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace myxtts {

// Lines for a terminal, starting with the verdict.
std::vector<std::string> diagnosis_lines(const Diagnosis& found);

nlohmann::ordered_json diagnosis_json(const Diagnosis& found);

}  // namespace myxtts
