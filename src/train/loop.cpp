#include "train/loop.h"

#include "base/counted.h"
#include "base/error.h"
#include "base/time_left.h"
#include "model/torch_device.h"
#include "train/rank_check.h"
#include "train/rank_metrics.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

std::string in_words(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

size_t index_of_loss(const std::vector<std::string>& names) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), "loss") - names.begin());
}

}  // namespace

Loop::Loop(const LoopParts& parts, const RunPosition& position, const std::atomic<bool>& stop)
    : parts_(parts), stop_(stop), position_(position), monitor_(parts.plan.signatures()) {
  summary_.steps.total = parts.plan.total_steps;
  if (ranks() != nullptr) summary_.rank = ranks()->place().rank;
  summary_.stopped_early = stops_early();
}

const Corpus& Loop::validation_corpus() const {
  return parts_.input.validation != nullptr ? *parts_.input.validation : parts_.input.corpus;
}

at::Device Loop::device() const { return torch_device(parts_.input.mode.model_device); }

// If steps are not captured, the captures that there would have been.
int64_t Loop::captures() const { return parts_.step.captures() > 0 ? parts_.step.captures() : monitor_.captures(); }

TrainSummary Loop::run() {
  const std::unique_ptr<BatchSource> source = open_training_feed();
  const Stopwatch capturing;
  parts_.step.capture(parts_.plan.signatures());
  if (parts_.step.captures() > 0) {
    parts_.log.say("captured {} in {:.2f} s; each is replayed from now on",
                   counted(static_cast<uint64_t>(parts_.step.captures()), "step"), capturing.seconds());
  }
  if (device().is_cuda()) {
    meter_.watch_gpu(device().index(), [this](const std::string& text) { parts_.log.warn("{}", text); });
  }
  session_.restart();
  meter_.begin(source->stats());
  try {
    train_on(*source);
  } catch (...) {
    keep_begun_log();
    throw;
  }
  summary_.interrupted = stopping() && position_.step < parts_.plan.total_steps;
  if (meter_.steps() > 0) begin_log(source->stats());
  if (pending_) finish_log();  // waits for the last step
  summary_.seconds = session_.seconds();
  summary_.input_wait = summary_.seconds > 0 ? meter_.waited_s() / summary_.seconds : 0;
  end();
  return summary_;
}

void Loop::train_on(BatchSource& source) {
  while (position_.step < parts_.plan.total_steps && !stopping() && !summary_.stopped_early) {
    const bool epoch_ended = one_step(source);
    if (summary_.steps.this_session == 1) report_first_step();
    if (due(config().log_every)) begin_log(source.stats());
    if (pending_ && log_is_due()) finish_log();
    const bool improved = validation_due(epoch_ended) && validate();
    if (due(config().sample_every)) sample();
    if (due(config().checkpoint_every) || improved) {
      if (ranks() != nullptr) check_same(*ranks(), parts_.step.states());
      save(improved);
    }
    parts_.log.show_progress(progress());
  }
}

// A run that fails leaves the log line that it had begun.
void Loop::keep_begun_log() {
  if (!pending_ || (ranks() != nullptr && ranks()->sums_have_ended())) return;
  try {
    finish_log();
  } catch (const std::exception&) {  // the first failure is the one to report
  }
}

TrainProgress Loop::progress() const {
  const auto done = static_cast<double>(std::max<int64_t>(1, summary_.steps.this_session));
  const auto left = static_cast<double>(parts_.plan.total_steps - position_.step);
  return {position_.step, parts_.plan.total_steps, session_.seconds() / done * left, distortion_, last_};
}

void Loop::end() {
  if (parts_.checkpoints.saved_step() != position_.step) {
    if (ranks() != nullptr) check_same(*ranks(), parts_.step.states());
    save(false);
  }
  const auto lost = parts_.checkpoints.finish();
  if (position_.step >= parts_.plan.total_steps && sampled_step_ != position_.step) sample();
  log_replaced();
  parts_.log.flush();
  parts_.log.write_report();
  if (ranks() != nullptr) ranks()->wait_for_all();  // for rank 0 to have written everything
  if (lost) fail("train", "{}", *lost);
  summary_.steps.done = position_.step;
  summary_.steps.captures = captures(), summary_.steps.retraces = monitor_.retraces();
  summary_.losses.best_validation = position_.best_validation;
  summary_.checkpoint = parts_.checkpoints.newest();
  summary_.report = parts_.log.report();
}

std::unique_ptr<BatchSource> Loop::open_training_feed() {
  const TrainInput& input = parts_.input;
  Feed feed = plan_feed(input.config, input.corpus, parts_.plan.training, input.mode);
  feed.loader.arrays = parts_.trainable.arrays();
  share_feed(feed);
  feed.loader.epoch = position_.epoch, feed.loader.index = position_.batch;
  feed.loader.say = [this](const std::string& text) { parts_.log.say("tuned: {}", text); };
  for (const auto& [name, text] : startup_facts(feed, input.config, parts_.plan.training)) {
    parts_.log.say("{}: {}", name, text);
  }
  if (!parts_.plan.static_shapes) {
    parts_.log.warn("static shapes are off: no step is captured, and every new length counts as a retrace");
  }
  return open_feed(feed, input.corpus, parts_.plan.training);
}

void Loop::share_feed(Feed& feed) const {
  if (ranks() == nullptr) return;
  feed.loader.rank = static_cast<uint64_t>(ranks()->place().rank);
  feed.loader.world_size = static_cast<uint64_t>(ranks()->place().count);
}

void Loop::note_replaced(const Batch& batch) {
  if (ranks() == nullptr) return parts_.log.add_replaced(batch.replaced);
  replaced_.insert(replaced_.end(), batch.replaced.begin(), batch.replaced.end());
}

void Loop::log_replaced() {
  if (ranks() == nullptr) return;
  const std::vector<BadClip> all = gather_replaced(*ranks(), std::exchange(replaced_, {}));
  if (writes()) parts_.log.add_replaced(all);
}

// The only step that is waited for: whoever starts a run wants to know that it runs.
void Loop::report_first_step() {
  const StepValues values = parts_.step.values();
  parts_.log.say("the first step is done: loss {:.4f}", values.losses[index_of_loss(parts_.step.loss_names())]);
  meter_.exclude_idle();
}

bool Loop::one_step(BatchSource& source) {
  bool epoch_ended = false;
  const double waited_before_s = ranks() != nullptr ? ranks()->waited_s() : 0;
  learning_rate_ = scheduled_learning_rate(config().learning_rate, position_.step, parts_.plan.warmup_steps,
                                           parts_.plan.total_steps);
  for (int64_t i = 0; i < config().gradient_accumulation_steps; ++i) {
    // Without the time to hand over a batch that is ready, as `bench loader` and `diagnose` count too.
    const double input_before_s = source.stats().consumer_waits_s;
    const BatchLease batch = source.next(parts_.step.stream());
    meter_.waited_for_input(source.stats().consumer_waits_s - input_before_s);
    note_replaced(*batch);
    TensorMap tensors = cut_tensors(*batch);
    check_signature(tensors, false);
    meter_.add_batch(*batch, tensors["mel"].size(0) * tensors["mel"].size(1));
    if (ranks() != nullptr) {
      double stops = stop_ ? 1 : 0;
      parts_.step.share(tensors, batch->lengths, {&stops, 1});
      all_stop_ = all_stop_ || stops > 0;
    }
    meter_.begin_work(parts_.step.stream());
    if (i == 0) parts_.step.begin(learning_rate_);
    parts_.step.add(tensors, noise_seed(config().seed, parts_.plan.batch_number(position_), false));
    if (++position_.batch == parts_.plan.training.batches_per_epoch()) {
      position_.batch = 0;
      ++position_.epoch;
      epoch_ended = true;
    }
    if (i + 1 == config().gradient_accumulation_steps) parts_.step.update();
    meter_.end_work(parts_.step.stream());
  }
  if (ranks() != nullptr) meter_.waited_for_ranks(ranks()->waited_s() - waited_before_s);
  meter_.end_step();
  ++position_.step;
  ++summary_.steps.this_session;
  return epoch_ended;
}

// Without static shapes cut to the longest row that any rank has.
TensorMap Loop::cut_tensors(const Batch& batch) const {
  if (parts_.plan.static_shapes) return tensors_of(batch);
  RowLength longest = longest_row(batch);
  if (ranks() != nullptr) {
    const std::vector<int64_t> of_all = ranks()->largest({longest.tokens, longest.mel_frames});
    longest.tokens = static_cast<int32_t>(of_all[0]), longest.mel_frames = static_cast<int32_t>(of_all[1]);
  }
  return tensors_of(batch, longest);
}

void Loop::check_signature(const TensorMap& batch, bool validation) {
  const auto changed = monitor_.see(signature_of(batch, validation));
  if (!changed) return;
  const bool dynamic = !parts_.plan.static_shapes;
  if (config().strict_shapes) {
    fail("train", "a batch of another shape at step {}: {}; training.strict_shapes allows the declared ones only{}",
         position_.step + 1, *changed, dynamic ? ", and --disable-static-shapes declares none" : "");
  }
  if (!dynamic) parts_.log.warn("retrace at step {}: {}", position_.step + 1, *changed);
}

// Metrics of the steps since the last log. Their losses are still on the device: they are sent for, and the log is
// written when they have arrived, a step or more later.
void Loop::begin_log(const LoaderStats& loader) {
  if (pending_) finish_log();
  pending_.emplace();
  pending_->step = position_.step, pending_->epoch = position_.epoch;
  pending_->add("lr", "optimiser/learning_rate", learning_rate_);
  const double ranks_wait_ms = meter_.ranks_wait_ms();
  meter_.report(
      loader, [this] { parts_.step.wait(); }, *pending_);
  if (ranks() != nullptr) merge_metrics(*ranks(), ranks_wait_ms, *pending_);
  log_replaced();
  pending_->add_count("captures", "shapes/captures", captures());
  pending_->add_count("retraces", "shapes/retraces", monitor_.retraces());
  parts_.step.send_values();
}

// On several ranks after the same step, as what is logged may end the run.
bool Loop::log_is_due() const {
  return ranks() == nullptr ? parts_.step.values_arrived() : position_.step > pending_->step;
}

void Loop::finish_log() {
  const StepMetrics measured = *std::exchange(pending_, std::nullopt);
  const StepValues values = parts_.step.sent_values();
  const std::vector<std::string> names = parts_.step.loss_names();
  StepMetrics metrics;
  metrics.step = measured.step, metrics.epoch = measured.epoch;
  for (size_t i = 0; i < names.size(); ++i) metrics.add(names[i], loss_tag(names[i]), values.losses[i]);
  const std::vector<ParameterGroup>& groups = parts_.step.groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string suffix = groups.size() == 1 ? "" : "_" + groups[i].name;
    metrics.add("grad_norm" + suffix, "optimiser/gradient_norm" + suffix, values.gradient_norm[i]);
  }
  metrics.values.insert(metrics.values.end(), measured.values.begin(), measured.values.end());
  metrics.add("skipped", "", values.skipped_total);
  metrics.lists = measured.lists;
  parts_.log.add(metrics);
  last_ = metrics;
  const double loss = metrics.value("loss");
  if (summary_.losses.first == 0) summary_.losses.first = loss;
  summary_.losses.last = loss;
  summary_.steps.skipped = static_cast<int64_t>(values.skipped_total);
  parts_.log.show_logged(progress());
  if (values.skipped_in_a_row >= static_cast<double>(config().skipped_steps_limit)) {
    save(false);
    parts_.checkpoints.finish();
    fail("train", "{} updates in a row were skipped because the gradient norm was not finite", values.skipped_in_a_row,
         way_out("lower --lr (now {}), or check the clips of epoch {} before batch {}", config().learning_rate,
                 position_.epoch, position_.batch));
  }
}

// Before work that is not training: what was begun is done, and the time until the next step does not count.
void Loop::drain() {
  parts_.step.wait();
  if (pending_) finish_log();
  meter_.exclude_idle();
}

bool Loop::validation_due(bool epoch_ended) const {
  if (parts_.plan.validation.batches_per_epoch() == 0) return false;
  if (config().validate_every > 0) return due(config().validate_every);
  const bool long_ago = position_.step - position_.last_validation >= parts_.plan.validation_interval;
  return (epoch_ended && long_ago) || position_.step == parts_.plan.total_steps;
}

bool Loop::stops_early() const {
  return parts_.plan.patience > 0 && position_.validations_without_progress >= parts_.plan.patience;
}

// A short pass: few batches ahead, no caches, nothing to tune.
Feed Loop::validation_feed() const {
  Feed feed;
  feed.mode = parts_.input.mode;
  feed.loader = plan_feed(parts_.input.config, validation_corpus(), parts_.plan.validation, feed.mode).loader;
  feed.loader.arrays = parts_.trainable.arrays();
  share_feed(feed);
  constexpr size_t ring_batches = 4;
  feed.loader.ring_batches = std::min(feed.loader.ring_batches, ring_batches);
  feed.loader.gpu_cache_bytes = feed.loader.host_cache_bytes = 0;
  feed.loader.tune = false;
  return feed;
}

// Every clip held out, by the EMA weights.
std::vector<double> Loop::evaluate() {
  drain();
  const StepMeter::Pause pause(meter_);
  const BatchPlan& plan = parts_.plan.validation;
  const std::unique_ptr<BatchSource> source = open_feed(validation_feed(), validation_corpus(), plan);
  parts_.step.begin_evaluation();
  for (uint64_t i = 0; i < plan.batches_per_epoch(); ++i) {
    const BatchLease batch = source->next(parts_.step.stream());
    note_replaced(*batch);
    TensorMap tensors = cut_tensors(*batch);
    check_signature(tensors, true);
    auto frames = static_cast<double>(batch->valid_frames());
    if (ranks() != nullptr) parts_.step.share(tensors, batch->lengths, {&frames, 1});
    parts_.step.evaluate(tensors, noise_seed(config().seed, i, true), frames);
  }
  return parts_.step.end_evaluation();
}

bool Loop::validate() {
  position_.last_validation = position_.step;
  const std::vector<double> values = evaluate();
  const std::vector<std::string> losses = parts_.step.loss_names(), names = parts_.step.evaluated_names();
  StepMetrics metrics;
  metrics.step = position_.step, metrics.epoch = position_.epoch;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string part = i < losses.size() ? loss_tag(names[i]).substr(std::string("loss/").size()) : names[i];
    metrics.add(names[i] == "loss" ? "validation_loss" : "validation_" + part, "validation/" + part, values[i]);
  }
  parts_.log.add(metrics);
  distortion_ = metrics.value("validation_cepstral_distortion");
  const size_t loss = index_of_loss(names), decisive = names.size() > losses.size() ? losses.size() : loss;
  if (ranks() != nullptr) {  // rank 0 forgets a best one that it could not write
    at::Tensor best = at::full({1}, position_.best_validation, at::kDouble);
    ranks()->broadcast(best);
    position_.best_validation = best.item<double>();
  }
  const bool improved = values[decisive] < position_.best_validation;
  if (improved) position_.best_validation = values[decisive];
  position_.validations_without_progress = improved ? 0 : position_.validations_without_progress + 1;
  std::string measured;
  for (size_t i = losses.size(); i < names.size(); ++i) {
    measured += fmt::format(", {} {:.4f}", in_words(names[i]), values[i]);
  }
  const bool last = position_.step >= parts_.plan.total_steps;
  parts_.log.say("step {}: validation loss {:.4f}{}{}{}", position_.step, values[loss], measured,
                 improved ? ", the best so far" : "", last ? "" : "; " + time_left_text(progress().seconds_left));
  if (config().sample_every == 0) sample();
  if (stops_early()) {
    parts_.log.say("stopped early at step {}: {} validations in a row did not improve on {} {:.4f}", position_.step,
                   position_.validations_without_progress, in_words(names[decisive]), position_.best_validation);
    summary_.stopped_early = true;
  }
  return improved;
}

void Loop::sample() {
  drain();
  sampled_step_ = position_.step;
  if (!writes()) return;
  const StepMeter::Pause pause(meter_);
  const bool held_out = parts_.plan.validation.batches_per_epoch() > 0;
  try {
    parts_.log.add_samples(
        position_.step,
        parts_.trainable.samples(parts_.step.ema_weights(), held_out ? validation_corpus() : parts_.input.corpus,
                                 held_out ? parts_.plan.validation : parts_.plan.training, device()));
  } catch (const std::exception& error) {  // libtorch's too: a sample is no reason to end
    parts_.log.warn_once("samples", fmt::format("no samples are made: {}", error.what()));
  }
  parts_.log.write_report();
}

void Loop::save(bool best) {
  drain();
  if (ranks() != nullptr) ranks()->check();
  if (!writes()) return parts_.checkpoints.written_elsewhere(position_);
  const StepMeter::Pause pause(meter_);
  parts_.checkpoints.save(position_, best, [this](const std::string& text) { parts_.log.warn("{}", text); });
}

}  // namespace myxtts
