// What is trained. A trainable names the arrays it needs, its parameter groups (one for a voice, two for a GAN) and its
// losses, and maps a batch to them. The step captures it, the optimiser updates its groups, the loop knows neither
// voices nor vocoders. Immutable while it is trained; one thread.
#pragma once

#include "artifacts/run_report.h"
#include "corpus/corpus.h"
#include "model/parameters.h"
#include "model/trunk.h"
#include "plan/batch_plan.h"
#include "train/retrace_monitor.h"
#include "train/tensor_map.h"
#include "train/update.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace myxtts {

// Parameters that one optimiser updates.
struct ParameterGroup {
  std::string name;
  const ParameterLayout* layout = nullptr;
  OptimizerSettings optimizer;
  double learning_rate_scale = 1;  // times the schedule's
  // Names of its losses, the one that is minimised first. They are the keys of metrics.jsonl: `loss`, `loss_prior`, ...
  std::vector<std::string> losses;
};

// What it can do at a moment of its training, to look at and to listen to.
struct Samples {
  std::vector<Picture> pictures;
  std::vector<Sound> sounds;
};

class Trainable {
 public:
  virtual ~Trainable() = default;

  virtual std::vector<std::string> arrays() const = 0;

  // Updated in this order; where no batches are accumulated, each sees those before it already updated. Exactly one
  // loss of one group is called `loss`.
  virtual std::vector<ParameterGroup> groups() const = 0;

  // A valid batch of that shape, for capturing: its values do not matter.
  virtual TensorMap example(const StepSignature& shape, at::Device device) const = 0;

  // Memory for what a step draws at random, and the drawing of it, outside of any capture. Rows of a larger batch get
  // what they would get in it.
  virtual TensorMap make_noise(const TensorMap& batch) const = 0;
  virtual void draw_noise(TensorMap& noise, at::Generator generator, const RowPlace& rows) const = 0;

  // What losses divide by, from what the host knows of the rows. Of rows of a larger batch they are summed over all of
  // it and added to the rows' arrays, so that the losses and gradients of all rows add up to the whole batch's.
  using Counts = std::vector<std::pair<std::string, int64_t>>;
  virtual Counts counts(std::span<const RowLength> rows) const = 0;

  // The losses of one group, float scalars in the order of its names. `weights` has an entry per group. With `inspect`
  // every intermediate result is shown to it.
  virtual std::vector<at::Tensor> losses(size_t group, std::span<const Weights> weights, const TensorMap& batch,
                                         const TensorMap& noise, const Inspect& inspect) const = 0;

  // At most so many parts of a batch whose losses and gradients add up to the whole's, to be computed apart on a CPU.
  // Fewer than two: it is not divided.
  struct Part {
    TensorMap batch, noise;
  };
  virtual std::vector<Part> divided(const TensorMap& /*batch*/, const TensorMap& /*noise*/, int64_t /*most*/) const {
    return {};
  }

  // What else is measured in validation, less is better. The first decides which checkpoint is best and when a run
  // stops early; where there is none, `loss` does.
  virtual std::vector<std::string> measures() const { return {}; }
  virtual std::vector<at::Tensor> measure(std::span<const Weights>, const TensorMap& /*batch*/,
                                          const TensorMap& /*noise*/) const {
    return {};
  }

  // Backward writes the gradients of these weights' fused stacks instead of adding to them.
  virtual bool overwrites_gradients(const Weights& weights) const = 0;

  // What a checkpoint must say besides weights, so that it can be used without the corpus.
  virtual std::map<std::string, std::string> metadata() const = 0;

  // By the EMA weights, of the first clip of the plan.
  virtual Samples samples(std::span<const Weights> weights, const Corpus& corpus, const BatchPlan& plan,
                          at::Device device) const = 0;
};

}  // namespace myxtts
