// The page about a diagnosis: one file, the verdict on top in one sentence.
#pragma once

#include "artifacts/run_report.h"
#include "diagnose/diagnosis.h"
#include "diagnose/observation.h"
#include "plan/shapes.h"

#include <string>
#include <utility>
#include <vector>

namespace myxtts {

struct DiagnosisPage {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // what was looked at
  std::vector<std::string> charts;                         // SVG
};

std::string make_diagnosis_page(const Diagnosis& found, const DiagnosisPage& page);

// Timeline of stages, busy shares, histogram, ring and padding of an observation.
std::vector<std::string> observation_charts(const Observation& seen, const PipelineSetup& setup,
                                            const std::vector<Shape>& shapes);

// What a finished run's metrics show of the same.
std::vector<std::string> run_charts(const RunRecord& run);

}  // namespace myxtts
