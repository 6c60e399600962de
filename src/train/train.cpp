#include "train/train.h"

#include "artifacts/run_report.h"
#include "artifacts/tensorboard.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "loader/feed.h"
#include "plan/shapes.h"
#include "settings/config_file.h"
#include "synth/voice_file.h"
#include "train/checkpoint.h"
#include "train/describe_voice.h"
#include "train/metrics.h"
#include "train/retrace_monitor.h"
#include "train/samples.h"
#include "train/step.h"
#include "train/step_meter.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

uint64_t plan_hash(const BatchPlan& plan, int64_t seed) {
  uint64_t hash = hash_bytes(&seed, sizeof(seed));
  for (const Shape& shape : plan.shapes()) {
    const int64_t numbers[] = {shape.text_length, shape.mel_frames, shape.batch_size};
    hash = hash_bytes(numbers, sizeof(numbers), hash);
    hash = hash_bytes(shape.clips.data(), shape.clips.size() * sizeof(uint32_t), hash);
  }
  return hash;
}

// Seeds of what is random in a batch: by its number since the start, not by time.
uint64_t noise_seed(int64_t seed, uint64_t batch, bool validation) {
  const uint64_t numbers[] = {static_cast<uint64_t>(seed), batch, validation ? 1U : 0U};
  return hash_bytes(numbers, sizeof(numbers)) >> 1;
}

class Run {
 public:
  Run(const TrainInput& input, const TrainListener& listener, const std::atomic<bool>& stop)
      : input_(input),
        config_(input.config.training),
        listener_(listener),
        stop_(stop),
        device_(input.mode.model_device < 0
                    ? at::Device(at::kCPU)
                    : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(input.mode.model_device))),
        shapes_(plan_shapes(input.corpus.index.lengths(), input.config.data)),
        plan_(shapes_.shapes, static_cast<uint64_t>(config_.seed)),
        validation_plan_(validation_shapes(), static_cast<uint64_t>(config_.seed), BatchPlan::Visit::every_clip),
        voice_description_(describe_voice(input.config, input.corpus)),
        voice_(voice_description_.spec(), uses_fused_kernels(config_)),
        monitor_(declared_signatures()) {
    if (plan_.batches_per_epoch() == 0) {
      reject_input("train", "{} has {} clips, too few for a batch of {}; give a smaller --batch-size",
                   input.corpus.folder.string(), input.corpus.index.size(), plan_.shapes().front().batch_size);
    }
    folder_ = fs::path(config_.checkpoint_dir).lexically_normal();
    if (!folder_.has_filename()) folder_ = folder_.parent_path();  // it was given with a slash at its end
    const uint64_t batches = plan_.batches_per_epoch() * static_cast<uint64_t>(config_.epochs);
    total_steps_ = static_cast<int64_t>(batches) / config_.gradient_accumulation_steps;
    if (config_.max_steps > 0) total_steps_ = std::min(total_steps_, config_.max_steps);
    if (total_steps_ == 0) {
      reject_input("train", "{} epochs have {} batches, fewer than training.gradient_accumulation_steps, {}",
                   config_.epochs, batches, config_.gradient_accumulation_steps);
    }
    if (input.reset) {
      if (const auto aside = CheckpointFolder::set_aside(folder_)) say("the earlier run is now in {}", aside->string());
    }
    checkpoints_.emplace(folder_, config_.keep_checkpoints);
    checkpoints_->remove_leftovers();
    constexpr int64_t longest_warmup = 1000;
    warmup_ = config_.warmup_steps >= 0 ? config_.warmup_steps : std::min(longest_warmup, total_steps_ / 10);
    const StepSettings settings = step_settings(input.config, device_);
    step_.emplace(voice_, voice_.layout().initial(static_cast<uint64_t>(config_.seed)), settings);
    position_.plan = plan_hash(plan_, config_.seed);
    say("{} voice of {:.1f} million weights on {} in {}", input.config.model.size,
        static_cast<double>(voice_.layout().parameters()) / 1e6,
        device_.is_cpu() ? "the CPU" : device_name(input.mode.model_device),
        settings.type == at::kBFloat16 ? "bfloat16 with float masters" : "float");
    resume();
    metrics_.emplace(folder_ / "metrics.jsonl", position_.step);
    events_.emplace(
        config_.tensorboard_log_dir.empty() ? folder_ / "tensorboard" : fs::path(config_.tensorboard_log_dir),
        position_.step + 1);
    quarantine_.emplace(folder_ / "quarantine.jsonl");
    write_file_atomically(folder_ / "config.yaml", config_to_yaml(input.config));
    write_file_atomically(folder_ / "vocabulary.json", voice_description_.vocabulary.to_json());
  }

  TrainSummary go() {
    summary_.total_steps = total_steps_;
    Feed feed = plan_feed(input_.config, input_.corpus, plan_, input_.mode);
    feed.loader.epoch = position_.epoch, feed.loader.index = position_.batch;
    feed.loader.say = [this](const std::string& text) { say("tuned: {}", text); };
    for (const auto& [name, text] : startup_facts(feed, input_.config, plan_)) say("{}: {}", name, text);
    if (dynamic()) {
      warn("static shapes are off: no step is recorded, and every new length counts as a retrace");
    }
    const std::unique_ptr<BatchSource> source = open_feed(feed, input_.corpus, plan_);
    source_ = source.get();
    const Stopwatch recording;
    step_->record(declared_signatures());
    if (step_->recordings() > 0) {
      say("{} recorded in {:.2f} s: each is replayed from now on",
          counted(static_cast<uint64_t>(step_->recordings()), "step"), recording.seconds());
    }
    if (device_.is_cuda()) meter_.watch_gpu(device_.index(), [this](const std::string& text) { warn("{}", text); });
    const Stopwatch session;
    meter_.begin(source->stats());
    while (position_.step < total_steps_ && !stop_ && !summary_.stopped_early) {
      one_step(*source);
      summary_.seconds = session.seconds();
      if (summary_.session_steps == 1) tell_first_step();
      if (due(config_.log_every)) begin_log();
      if (logging_ && step_->figures_arrived()) log();
      if (validation_due()) validate();
      if (due(config_.sample_every)) sample();
      if (due(config_.checkpoint_every) || improved_) save();
      if (listener_.step) listener_.step(position_.step, total_steps_, last_report_);
    }
    summary_.interrupted = stop_ && position_.step < total_steps_;
    if (meter_.steps() > 0) begin_log();
    if (logging_) log();  // waits for the last step
    summary_.seconds = session.seconds();
    summary_.input_wait = session.seconds() > 0 ? meter_.waited_s() / session.seconds() : 0;
    if (saved_step_ != position_.step) save();
    checkpoints_->wait();
    const auto lost = checkpoints_->take_error();
    if (position_.step >= total_steps_ && sampled_step_ != position_.step) sample();
    tolerate("the TensorBoard file", [&] { events_->flush(); });
    write_report();
    if (lost) fail("train", "{}", *lost);
    summary_.steps = position_.step;
    summary_.best_validation = position_.best_validation;
    summary_.captures = captures(), summary_.retraces = monitor_.retraces();
    summary_.checkpoint = folder_ / fmt::format("step-{:08}.safetensors", saved_step_);
    summary_.report = folder_ / "report.html";
    return summary_;
  }

 private:
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (listener_.say) listener_.say(fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    if (listener_.warn) listener_.warn(fmt::format(format, std::forward<Args>(args)...));
  }

  // What a run leaves behind for people must not end it, on a full disk for instance: it is said once.
  void tolerate(const char* what, const std::function<void()>& writing) {
    try {
      writing();
    } catch (const std::exception& error) {
      if (warned_.insert(what).second) warn("{} cannot be written, and the run goes on: {}", what, error.what());
    }
  }

  bool due(int64_t every) const { return every > 0 && position_.step % every == 0; }

  bool dynamic() const { return !input_.config.data.pad_to_fixed_length; }

  const Corpus& validation_corpus() const { return input_.validation != nullptr ? *input_.validation : input_.corpus; }

  std::vector<Shape> validation_shapes() {
    if (input_.validation == nullptr) return shapes_.validation;
    std::vector<uint32_t> unfit;
    std::vector<Shape> fitted = fit_to_shapes(input_.validation->index.lengths(), shapes_.shapes, unfit);
    for (const uint32_t clip : unfit) {
      warn("{} is longer than every shape of training and is not validated on", input_.validation->clip(clip).id);
    }
    return fitted;
  }

  std::vector<StepSignature> declared_signatures() const {
    std::vector<StepSignature> declared;
    if (dynamic()) return declared;
    for (const BatchPlan* plan : {&plan_, &validation_plan_}) {
      for (const Shape& shape : plan->shapes()) {
        declared.push_back({shape.batch_size, shape.text_length, shape.mel_frames, plan == &validation_plan_});
      }
    }
    return declared;
  }

  void resume() {
    const auto newest = newest_checkpoint(folder_, [&](const std::string& text) { warn("{}", text); });
    if (!newest) return;
    const CheckpointHeader header = read_checkpoint_header(*newest);
    check_same_voice(*newest, header.voice, voice_description_);
    load_checkpoint(*newest, voice_.layout(), step_->state());
    step_->reload();
    // The corpus's statistics are part of the voice: those that its weights were trained with stay.
    voice_description_.mel_mean = header.voice.mel_mean;
    voice_description_.mel_deviation = header.voice.mel_deviation;
    voice_ = Voice(voice_description_.spec(), uses_fused_kernels(config_));
    const uint64_t plan = position_.plan;
    position_ = header.position;
    saved_step_ = position_.step;
    summary_.stopped_early =
        config_.early_stopping > 0 && position_.validations_without_progress >= config_.early_stopping;
    if (position_.plan != plan) {
      warn("the corpus, its shapes or the seed are not those of {}: epoch {} begins anew", newest->string(),
           position_.epoch);
      position_.batch = 0;
      position_.plan = plan;
    }
    say("resumed from {}: step {}, epoch {}, batch {}", newest->string(), position_.step, position_.epoch,
        position_.batch);
  }

  // The one step that is waited for: whoever starts a run wants to know that it goes.
  void tell_first_step() {
    const double loss = step_->figures().loss;
    say("the first step is done: loss {:.4f}", loss);
    meter_.rest();
  }

  void one_step(BatchSource& source) {
    for (int64_t i = 0; i < config_.gradient_accumulation_steps; ++i) {
      // Without what it takes to hand over a batch that is ready, as `bench loader` and `diagnose` count too.
      const double waited_before_s = source.stats().consumer_waits_s;
      const LoadedBatch& batch = source.next(step_->stream());
      meter_.waited_for_input(source.stats().consumer_waits_s - waited_before_s);
      note_replaced(batch);
      const VoiceBatch wrapped = wrap_batch(batch, input_.corpus, device_, dynamic());
      see_signature(wrapped, false);
      int64_t true_frames = 0;
      for (const uint32_t clip : batch.clips) true_frames += input_.corpus.index.lengths()[clip].mel_frames;
      meter_.add_batch(batch.rows, batch.seconds, wrapped.mel.size(0) * wrapped.mel.size(1), true_frames);
      if (i == 0) meter_.begin_step(step_->stream());
      step_->add(wrapped, noise_seed(config_.seed, batch_number(), false));
      if (++position_.batch == plan_.batches_per_epoch()) {
        position_.batch = 0;
        ++position_.epoch;
        epoch_ended_ = true;
      }
    }
    learning_rate_ = scheduled_learning_rate(config_.learning_rate, position_.step, warmup_, total_steps_);
    step_->update(learning_rate_);
    meter_.end_step(step_->stream());
    ++position_.step;
    ++summary_.session_steps;
  }

  // Where steps are not recorded, what would have been.
  int64_t captures() const { return step_->recordings() > 0 ? step_->recordings() : monitor_.captures(); }

  uint64_t batch_number() const { return position_.epoch * plan_.batches_per_epoch() + position_.batch; }

  void see_signature(const VoiceBatch& batch, bool validation) {
    const auto changed = monitor_.see(signature_of(batch, validation));
    if (!changed) return;
    if (config_.strict_shapes) {
      fail("train", "a batch of another shape at step {}: {}; training.strict_shapes allows the declared ones only{}",
           position_.step + 1, *changed, dynamic() ? ", and --disable-static-shapes declares none" : "");
    }
    if (!dynamic()) warn("retrace at step {}: {}", position_.step + 1, *changed);
  }

  void note_replaced(const LoadedBatch& batch) {
    if (!batch.replaced.empty()) tolerate("quarantine.jsonl", [&] { quarantine_->add(batch.replaced); });
    for (const BadClip& bad : batch.replaced) {
      if (!warned_.insert(bad.id).second) continue;
      warn("{} is {}: {}", bad.id, bad.replaced_by.empty() ? "left out" : "replaced by " + bad.replaced_by, bad.reason);
    }
  }

  // What is known of the steps since the last log. Their losses are still on the device: they are asked for, and the
  // log is written when they have come, a step or more later.
  void begin_log() {
    if (logging_) log();
    StepReport report = meter_.report(source_->stats(), [this] { step_->figures(); });
    report.step = position_.step, report.epoch = position_.epoch;
    report.learning_rate = learning_rate_;
    report.captures = captures(), report.retraces = monitor_.retraces();
    step_->send_figures();
    logging_ = report;
  }

  void log() {
    StepReport report = *std::exchange(logging_, std::nullopt);
    report.figures = step_->sent_figures();
    metrics_->step(report);
    tolerate("the TensorBoard file", [&] { record_scalars(report); });
    last_report_ = report;
    if (summary_.first_loss == 0) summary_.first_loss = report.figures.loss;
    summary_.last_loss = report.figures.loss;
    summary_.skipped = static_cast<int64_t>(report.figures.skipped_total);
    if (listener_.logged) listener_.logged(report);
    if (report.figures.skipped_in_a_row >= static_cast<double>(config_.skipped_steps_limit)) {
      save();
      checkpoints_->wait();
      fail("train",
           "{} updates in a row were skipped because the gradient was not finite; lower --lr (now {}), or look "
           "at the clips of epoch {} before batch {}",
           report.figures.skipped_in_a_row, config_.learning_rate, position_.epoch, position_.batch);
    }
  }

  // Before something that is not training: what was begun is done, and the time until the next step does not count.
  void drain() {
    step_->figures();
    if (logging_) log();
    meter_.rest();
  }

  void record_scalars(const StepReport& report) {
    const auto scalar = [&](const char* tag, double value) {
      events_->scalar(tag, report.step, static_cast<float>(value));
    };
    scalar("loss/total", report.figures.loss);
    scalar("loss/prior", report.figures.prior);
    scalar("loss/duration", report.figures.duration);
    scalar("loss/flow", report.figures.flow);
    scalar("optimiser/learning_rate", report.learning_rate);
    scalar("optimiser/gradient_norm", report.figures.gradient_norm);
    scalar("speed/step_ms", report.step_ms);
    scalar("speed/input_wait_ms", report.input_wait_ms);
    scalar("speed/audio_s_per_s", report.audio_s_per_s);
    if (report.gpu_busy) scalar("speed/gpu_busy", *report.gpu_busy);
    if (report.gpu_utilisation) scalar("speed/gpu_utilisation", *report.gpu_utilisation);
    scalar("shapes/padding", report.padding);
    scalar("shapes/captures", static_cast<double>(report.captures));
    scalar("shapes/retraces", static_cast<double>(report.retraces));
    events_->flush();
  }

  bool validation_due() {
    const bool ended = std::exchange(epoch_ended_, false);
    if (validation_plan_.batches_per_epoch() == 0) return false;
    return config_.validate_every > 0 ? due(config_.validate_every) : ended || position_.step == total_steps_;
  }

  // A short pass: few batches ahead, no caches, nothing to tune.
  Feed validation_feed() const {
    Feed feed;
    feed.mode = input_.mode;
    feed.loader = plan_feed(input_.config, validation_corpus(), validation_plan_, input_.mode).loader;
    constexpr size_t ring_batches = 4;
    feed.loader.ring_batches = std::min(feed.loader.ring_batches, ring_batches);
    feed.loader.gpu_cache_bytes = feed.loader.host_cache_bytes = 0;
    feed.loader.tune = false;
    return feed;
  }

  // Every clip held out, by the averaged weights.
  StepFigures evaluate() {
    drain();
    const StepMeter::Pause pause(meter_);
    const std::unique_ptr<BatchSource> source = open_feed(validation_feed(), validation_corpus(), validation_plan_);
    step_->begin_evaluation();
    for (uint64_t i = 0; i < validation_plan_.batches_per_epoch(); ++i) {
      const LoadedBatch& batch = source->next(step_->stream());
      note_replaced(batch);
      const VoiceBatch wrapped = wrap_batch(batch, validation_corpus(), device_, dynamic());
      see_signature(wrapped, true);
      double frames = 0;
      for (const uint32_t clip : batch.clips) {
        if (clip != no_clip) frames += validation_corpus().index.lengths()[clip].mel_frames;
      }
      step_->evaluate(wrapped, noise_seed(config_.seed, i, true), frames);
    }
    return step_->end_evaluation();
  }

  void validate() {
    const StepFigures losses = evaluate();
    metrics_->validation(position_.step, position_.epoch, losses);
    tolerate("the TensorBoard file",
             [&] { events_->scalar("validation/total", position_.step, static_cast<float>(losses.loss)); });
    improved_ = losses.loss < position_.best_validation;
    if (improved_) position_.best_validation = losses.loss;
    position_.validations_without_progress = improved_ ? 0 : position_.validations_without_progress + 1;
    say("step {}: validation loss {:.4f}{}", position_.step, losses.loss, improved_ ? ", the best so far" : "");
    if (config_.sample_every == 0) sample();
    if (config_.early_stopping > 0 && position_.validations_without_progress >= config_.early_stopping) {
      say("stopped early: {} validations in a row were no better", position_.validations_without_progress);
      summary_.stopped_early = true;
    }
  }

  void sample() {
    drain();
    const StepMeter::Pause pause(meter_);
    sampled_step_ = position_.step;
    const bool held_out = validation_plan_.batches_per_epoch() > 0;
    try {
      samples_ =
          make_samples(voice_, step_->averaged_weights(), voice_description_,
                       held_out ? validation_corpus() : input_.corpus, held_out ? validation_plan_ : plan_, device_);
      record_samples(samples_, *events_, position_.step, folder_ / "samples");
    } catch (const std::exception& error) {  // libtorch's too: a sample is no reason to end
      if (warned_.insert("samples").second) warn("no samples are made: {}", error.what());
    }
    write_report();
  }

  void save() {
    drain();
    position_.seconds += save_clock_.seconds();
    save_clock_.restart();
    const StepMeter::Pause pause(meter_);
    checkpoints_->wait();
    tell_write_error();
    checkpoints_->save_in_background({voice_description_, position_}, voice_.layout(), step_->state(), improved_);
    best_in_hand_ = std::exchange(improved_, false);
    saved_step_ = position_.step;
  }

  void tell_write_error() {
    const auto error = checkpoints_->take_error();
    if (!error) return;
    warn("{}; the one before it stays, and the run goes on", *error);
    saved_step_ = -1;
    if (std::exchange(best_in_hand_, false)) position_.best_validation = std::numeric_limits<double>::infinity();
  }

  void write_report() {
    tolerate("report.html", [this] {
      RunRecord record = read_run(folder_);
      record.name = folder_.filename().string();
      record.settings = {{"corpus", input_.corpus.folder.string()},
                         {"size", fmt::format("{}, {:.1f} million weights", input_.config.model.size,
                                              static_cast<double>(voice_.layout().parameters()) / 1e6)},
                         {"device", device_.str()},
                         {"steps", fmt::format("{} of {}", position_.step, total_steps_)},
                         {"shapes", fmt::format("{}, padding {:.1f} %", shapes_.shapes.size(), shapes_.padding * 100)},
                         {"learning rate", fmt::format("{}", config_.learning_rate)},
                         {"seed", fmt::format("{}", config_.seed)}};
      record.pictures = samples_.pictures;
      record.sounds = samples_.sounds;
      write_file_atomically(folder_ / "report.html", make_run_report(record));
    });
  }

  const TrainInput& input_;
  const TrainingConfig& config_;
  const TrainListener& listener_;
  const std::atomic<bool>& stop_;
  at::Device device_;
  ShapePlan shapes_;
  BatchPlan plan_, validation_plan_;
  VoiceDescription voice_description_;
  Voice voice_;
  RetraceMonitor monitor_;
  fs::path folder_;
  int64_t total_steps_ = 0, warmup_ = 0;
  const BatchSource* source_ = nullptr;  // while it goes
  std::optional<TrainingStep> step_;
  std::optional<CheckpointFolder> checkpoints_;
  std::optional<MetricsFile> metrics_;
  std::optional<EventWriter> events_;
  std::optional<Quarantine> quarantine_;
  std::set<std::string> warned_;
  RunPosition position_;
  StepMeter meter_;
  Stopwatch save_clock_;
  double learning_rate_ = 0;
  bool epoch_ended_ = false, improved_ = false, best_in_hand_ = false;
  int64_t saved_step_ = -1, sampled_step_ = -1;
  StepReport last_report_;
  std::optional<StepReport> logging_;  // what waits for its losses
  Samples samples_;
  TrainSummary summary_;
};

}  // namespace

TrainSummary train(const TrainInput& input, const TrainListener& listener, const std::atomic<bool>& stop) {
  try {
    return Run(input, listener, stop).go();
  } catch (const c10::OutOfMemoryError& error) {
    const int64_t batch = input.config.data.batch_size.low;
    const ShapePlan shapes = plan_shapes(input.corpus.index.lengths(), input.config.data);
    const int64_t frames = shapes.shapes.back().mel_frames;
    fail("train",
         "the GPU's memory is full. Try, in this order: --batch-size {} (now {}) with --gradient-accumulation-steps "
         "{}, --max-mel-frames {} (now {}), or a smaller --model-size (now {})",
         std::max<int64_t>(1, batch / 2), batch, 2 * input.config.training.gradient_accumulation_steps,
         frames * 3 / 4 / 8 * 8, frames, input.config.model.size);
  }
}

}  // namespace myxtts
