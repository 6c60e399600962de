// HTML page of a diagnosis: one file, with the verdict on top.
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
  std::vector<std::pair<std::string, std::string>> facts;  // subject of the diagnosis
  std::vector<std::string> charts;                         // SVG
};

std::string make_diagnosis_page(const Diagnosis& found, const DiagnosisPage& page);

// Charts of an observation: timeline of stages, utilisation, histogram, ring and padding.
std::vector<std::string> observation_charts(const Observation& observation, const PipelineSetup& setup,
                                            const std::vector<Shape>& shapes);

// The same charts from the metrics of a finished run.
std::vector<std::string> run_charts(const RunRecord& run);

}  // namespace myxtts
