// One training step: forward and backward of every parameter group, and after the last batch of an accumulation the
// update. On a GPU each is captured once per shape and replayed. One thread; nothing waits for the device except where
// a comment says so.
#pragma once

#include "model/capture.h"
#include "train/gradient_buckets.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/retrace_monitor.h"
#include "train/row_workers.h"
#include "train/step_policy.h"
#include "train/trainable.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace myxtts {

class DeviceSum;
class Ranks;

struct StepSettings {
  at::Device device = at::kCPU;
  StepPolicy policy;
  int64_t accumulation = 1;         // batches per update
  uint64_t seed = 1;                // of the initial weights
  Ranks* ranks = nullptr;           // that have the other rows of each batch; null: there are none
  DeviceSum* device_sum = nullptr;  // sums gradients over the ranks on the device; null: `ranks` does, in host memory
};

// What a step reports, read from the device late and asynchronously.
struct StepValues {
  std::vector<double> losses;                      // of all groups, in their order
  std::vector<double> gradient_norm;               // per group, before clipping
  double skipped_in_a_row = 0, skipped_total = 0;  // updates, of the group that skipped most
};

class TrainingStep {
 public:
  // Keeps a reference to the trainable.
  TrainingStep(const Trainable& trainable, const StepSettings& settings);
  ~TrainingStep();

  // Captures a step for each of these shapes, before the first; others are captured when they come. Does nothing if
  // steps are not captured.
  void capture(const std::vector<StepSignature>& shapes);
  int64_t captures() const { return static_cast<int64_t>(captured_.shapes.size()); }

  // Makes the rows of this rank a part of the batch that all ranks have together. `also`: numbers to be summed over the
  // ranks in the same message. Does not wait for the device.
  void share(TensorMap& batch, std::span<const RowLength> rows, std::span<double> also);

  // A step: begin, add a batch (as many as are accumulated), update. What is random in a batch follows from `seed`
  // alone. Gradients are summed over the ranks before an update.
  void begin(double learning_rate);
  void add(const TensorMap& batch, uint64_t seed);
  void update();

  void wait();  // for the last update

  // Of the last update, over all ranks; waits for it.
  StepValues values();

  // The same without waiting: sent to the host once the update is done, and read when they have arrived.
  void send_values();
  bool values_arrived() const;
  StepValues sent_values() const;

  // Losses and measures with the EMA weights, a mean over batches weighted by `weight`: begin, evaluate each, and read,
  // which waits.
  void begin_evaluation();
  void evaluate(const TensorMap& batch, uint64_t seed, double weight);
  std::vector<double> end_evaluation();
  std::vector<std::string> evaluated_names() const;  // of what end_evaluation returns

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  std::vector<std::string> loss_names() const;
  const std::vector<OptimizerState>& states() const { return states_; }
  std::vector<OptimizerState>& states() { return states_; }
  void reload();  // after the masters were changed from outside

  std::vector<Weights> ema_weights() const;

  StreamHandle stream() const { return stream_ ? stream_->handle() : nullptr; }

 private:
  // Values of the last update on their way to the host.
  struct Readout {
    at::Tensor sums;    // of the losses since the last update
    at::Tensor values;  // losses, then per group norm, skipped in a row, skipped in all
    at::Tensor sent;    // on the host, pinned
    std::unique_ptr<DeviceEvent> arrival;
  };
  struct Evaluation {
    at::Tensor sums, weight;
    double weights = 0;
  };
  struct CapturedShape {
    TensorMap batch, noise;                              // replays read from here
    std::vector<std::unique_ptr<CapturedGraph>> graphs;  // per group; for validation one
  };
  struct Captured {
    std::unique_ptr<GraphCapturer> capturer;
    std::map<StepSignature, CapturedShape> shapes;
    std::vector<std::unique_ptr<CapturedGraph>> updates;  // per group
  };

  size_t first_loss(size_t group) const;
  std::vector<at::Tensor> losses(size_t group, const std::vector<Weights>& weights, const TensorMap& batch,
                                 const TensorMap& noise, bool backward);
  void add_gradient(size_t group, const TensorMap& batch, const TensorMap& noise);
  // By threads for parts of the rows, on a CPU; false: the batch is not divided.
  bool add_gradient_of_parts(size_t group, const TensorMap& batch, const TensorMap& noise);
  void add_losses(size_t group, const at::Tensor& losses);
  void add_evaluation(const TensorMap& batch, const TensorMap& noise);
  void apply_gradient(size_t group);
  void update_group(size_t group);
  at::TensorOptions count_options() const { return at::TensorOptions(at::kLong).device(settings_.device); }
  bool updates_early(size_t group) const { return settings_.accumulation == 1 && group + 1 < groups_.size(); }
  at::Tensor values_of_all_ranks() const;
  StepValues values_from(const at::Tensor& host) const;
  CapturedShape& captured(const StepSignature& shape);
  void warm_up(const std::function<void()>& work);

  const Trainable& trainable_;
  const StepSettings settings_;
  const std::vector<ParameterGroup> groups_;
  std::unique_ptr<OwnStream> stream_;
  // One entry per group.
  std::vector<OptimizerState> states_;
  std::vector<Weights> weights_, ema_;  // in the type that the model computes with
  std::vector<at::Tensor> learning_rates_;
  Readout readout_;
  Evaluation evaluation_;
  // On a CPU: threads for parts of a batch's rows, and what all but the first of them add their gradients to.
  std::unique_ptr<RowWorkers> workers_;
  std::vector<std::vector<Weights>> of_worker_;
  // With `device_sum`, per group; none if batches are accumulated, whose gradients are summed before the update.
  std::vector<std::unique_ptr<GradientBuckets>> buckets_;
  Captured captured_;
};

StepSignature signature_of(const TensorMap& batch, bool validation);

}  // namespace myxtts
