#include "train/run_plan.h"

#include "base/error.h"
#include "base/hash.h"

#include <algorithm>

namespace myxtts {
namespace {

uint64_t hash_of(const BatchPlan& plan, int64_t seed) {
  uint64_t hash = hash_bytes(&seed, sizeof(seed));
  for (const Shape& shape : plan.shapes()) {
    const int64_t numbers[] = {shape.text_length, shape.mel_frames, shape.batch_size};
    hash = hash_bytes(numbers, sizeof(numbers), hash);
    hash = hash_bytes(shape.clips.data(), shape.clips.size() * sizeof(uint32_t), hash);
  }
  return hash;
}

std::vector<Shape> validation_shapes(const ShapePlan& shapes, const Corpus* validation_corpus,
                                     const std::function<void(const std::string&)>& warn) {
  if (validation_corpus == nullptr) return shapes.validation;
  std::vector<uint32_t> unfit;
  std::vector<Shape> fitted = fit_to_shapes(validation_corpus->index.lengths(), shapes.shapes, unfit);
  for (const uint32_t clip : unfit) {
    warn(fmt::format("{} is longer than every shape of training and is not validated on",
                     validation_corpus->clip(clip).id));
  }
  return fitted;
}

// A third of the run's validations: by then a third of its steps is over. Few validations are too noisy to judge by.
int64_t automatic_patience(const RunPlan& plan, const TrainingConfig& training) {
  constexpr int64_t fewest = 5, share = 3;
  const auto up = [](int64_t number, int64_t by) { return (number + by - 1) / by; };
  int64_t interval = training.validate_every;
  if (interval == 0) {
    const auto batches = static_cast<int64_t>(plan.training.batches_per_epoch());
    const int64_t epoch = std::max<int64_t>(1, batches / training.gradient_accumulation_steps);
    interval = epoch * std::max<int64_t>(1, up(plan.validation_interval, epoch));
  }
  return std::max(fewest, up(plan.total_steps / interval, share));
}

}  // namespace

std::vector<StepSignature> RunPlan::signatures() const {
  std::vector<StepSignature> declared;
  if (!static_shapes) return declared;
  for (const BatchPlan* plan : {&training, &validation}) {
    for (const Shape& shape : plan->shapes()) {
      declared.push_back({shape.batch_size / ranks, shape.text_length, shape.mel_frames, plan == &validation});
    }
  }
  return declared;
}

RunPlan plan_run(const Config& config, const Corpus& corpus, const Corpus* validation_corpus, int64_t ranks,
                 const std::function<void(const std::string&)>& warn) {
  const TrainingConfig& training = config.training;
  const auto seed = static_cast<uint64_t>(training.seed);
  const bool crops = training.target == "vocoder";
  const int64_t crop_frames = corpus.mel.frames(crop_samples);
  ShapePlan shapes =
      crops ? plan_crops(corpus.index, config.data, crop_frames) : plan_corpus(corpus.index, config.data);
  if (crops && validation_corpus != nullptr) {
    shapes.validation = plan_crops(validation_corpus->index, config.data, crop_frames).shapes;
    validation_corpus = nullptr;
  }
  share_among_ranks(shapes, config.data, ranks);
  BatchPlan batches(shapes.shapes, seed);
  BatchPlan validation(validation_shapes(shapes, validation_corpus, warn), seed, BatchPlan::Visit::every_clip);
  RunPlan plan{std::move(shapes), std::move(batches), std::move(validation)};
  plan.ranks = ranks;
  plan.static_shapes = config.data.pad_to_fixed_length;
  plan.hash = hash_of(plan.training, training.seed);
  const uint64_t count = plan.training.batches_per_epoch() * static_cast<uint64_t>(training.epochs);
  plan.total_steps = training.max_steps;
  if (training.epochs > 0) {
    const int64_t steps = static_cast<int64_t>(count) / training.gradient_accumulation_steps;
    plan.total_steps = training.max_steps > 0 ? std::min(steps, training.max_steps) : steps;
  }
  if (plan.total_steps == 0) {
    reject_input("train", "{} epochs have {} batches, fewer than training.gradient_accumulation_steps, {}",
                 training.epochs, count, training.gradient_accumulation_steps);
  }
  constexpr int64_t max_automatic_warmup = 1000;
  plan.warmup_steps =
      training.warmup_steps >= 0 ? training.warmup_steps : std::min(max_automatic_warmup, plan.total_steps / 10);
  constexpr int64_t most_validations = 50;  // in a run: an epoch of a small corpus is over in a moment
  plan.validation_interval = plan.total_steps / most_validations;
  if (plan.validation.batches_per_epoch() > 0) {
    plan.patience = training.early_stopping == 0 ? automatic_patience(plan, training)
                                                 : std::max<int64_t>(0, training.early_stopping);
  }
  return plan;
}

uint64_t noise_seed(int64_t seed, uint64_t batch, bool validation) {
  const uint64_t numbers[] = {static_cast<uint64_t>(seed), batch, validation ? 1U : 0U};
  return hash_bytes(numbers, sizeof(numbers)) >> 1;
}

}  // namespace myxtts
