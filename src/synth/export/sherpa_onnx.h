// A voice and its vocoder as a folder that sherpa-onnx loads: model.onnx, vocoder.onnx, tokens.txt, perhaps a
// lexicon.txt, and a README.md that shows how.
#pragma once

#include "synth/export/graph.h"
#include "synth/share_voice.h"

#include <filesystem>
#include <string>
#include <vector>

namespace myxtts {

struct SherpaOnnxExport {
  std::filesystem::path voice, vocoder;  // as share_voice() takes them
  std::filesystem::path folder;
  WeightPrecision precision = WeightPrecision::float32;
  std::string speaker;   // a speaker of the voice, or a .speaker file, that alone speaks; empty: all, by their numbers
  std::string language;  // empty: data.language
  int64_t steps = 4;     // function evaluations of the flow
  std::filesystem::path words;        // texts, one per line, whose words make the lexicon; empty: there is none
  std::filesystem::path espeak_data;  // a folder to copy as espeak-ng-data; empty: none is
};

WeightPrecision precision_named(const std::string& name);

// Existing files of these names are replaced. Throws Error, also in a build without ONNX.
std::vector<SharedFile> export_sherpa_onnx(const SherpaOnnxExport& what);

}  // namespace myxtts
