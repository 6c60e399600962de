// What a run is to do, settled before its first step: shapes, which clips make which batch, how many steps, which
// learning rate. Pure; immutable.
#pragma once

#include "corpus/corpus.h"
#include "plan/batch_plan.h"
#include "plan/shapes.h"
#include "settings/config.h"
#include "train/checkpoint.h"
#include "train/retrace_monitor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace myxtts {

struct RunPlan {
  ShapePlan shapes;
  BatchPlan training, validation;  // `validation` visits every clip that is held out
  int64_t ranks = 1;               // that share each batch
  bool static_shapes = true;
  int64_t total_steps = 0, warmup_steps = 0;
  int64_t validation_interval = 0;  // steps, at least, between validations at the ends of epochs
  int64_t patience = 0;             // validations without improvement after which the run stops early; 0: it does not
  uint64_t hash = 0;                // of the seed, the shapes and their clips

  std::vector<StepSignature> signatures() const;  // of a rank, declared; none without static shapes
  // Batches since the start of the run: what is random in a batch follows from this number.
  uint64_t batch_number(const RunPosition& position) const {
    return position.epoch * training.batches_per_epoch() + position.batch;
  }
};

// `validation_corpus` null: what the corpus holds out. `warn` is called for each clip that fits no shape of training.
RunPlan plan_run(const Config& config, const Corpus& corpus, const Corpus* validation_corpus, int64_t ranks,
                 const std::function<void(const std::string&)>& warn);

// Seed of what is random in a batch.
uint64_t noise_seed(int64_t seed, uint64_t batch, bool validation);

}  // namespace myxtts
