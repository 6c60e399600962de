// What a voice can do at a moment of its training, to look at and to listen to: an alignment, a mel beside the true
// one, and a spoken sentence.
#pragma once

#include "artifacts/run_report.h"
#include "artifacts/tensorboard.h"
#include "corpus/corpus.h"
#include "model/voice.h"
#include "plan/batch_plan.h"
#include "synth/voice_description.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct Samples {
  std::string text;
  std::vector<Picture> pictures;  // alignment, true mel, spoken mel
  std::vector<Sound> sounds;      // spoken
  std::vector<std::pair<int, int>> picture_sizes;
  std::vector<float> samples;
  int sample_rate = 0;
};

// Of the first clip of the plan, or of training.sample_text where one is set.
Samples make_samples(const Voice& voice, const Weights& weights, const VoiceDescription& description,
                     const Corpus& corpus, const BatchPlan& plan, at::Device device);

// Into TensorBoard and, replacing the last ones, into files.
void record_samples(const Samples& samples, EventWriter& events, int64_t step, const std::filesystem::path& folder);

}  // namespace myxtts
