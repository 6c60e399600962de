#include "train/train.h"

#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/mapped_file.h"
#include "model/torch_device.h"
#include "settings/config_file.h"
#include "synth/voice_file.h"
#include "train/device_sum.h"
#include "train/fit_settings.h"
#include "train/loop.h"
#include "train/rank_check.h"
#include "train/ranks.h"
#include "train/take_over.h"
#include "train/vocoder_trainable.h"
#include "train/voice_trainable.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

// Where a run resumes.
struct Resumed {
  fs::path checkpoint;
  CheckpointHeader header;
};

fs::path run_folder(const TrainingConfig& config) {
  const fs::path folder = fs::path(config.checkpoint_dir).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();  // it was given with a slash at its end
}

// `ranks` may be null. Rank 0 alone reads checkpoints.
std::optional<Resumed> find_checkpoint(const fs::path& folder, Ranks* ranks, const TrainListener& listener) {
  std::optional<FoundCheckpoint> found;
  if (ranks == nullptr || ranks->writes()) {
    const auto newest = newest_checkpoint(folder, [&](const std::string& text) {
      if (listener.warn) listener.warn(text);
    });
    if (newest) found.emplace(*newest, read_checkpoint_metadata(*newest));
  }
  if (ranks != nullptr) found = broadcast(*ranks, found);
  if (!found) return std::nullopt;
  return Resumed{found->first, checkpoint_header(found->first, found->second)};
}

// The voice that is trained. The corpus's mel statistics are part of it: a resumed run keeps those that its weights
// were trained with.
VoiceDescription describe(const TrainInput& input, const std::optional<Resumed>& resumed) {
  VoiceDescription voice = input.voice;
  if (!resumed) return voice;
  const VoiceDescription saved = VoiceDescription::from_metadata(resumed->header.metadata, resumed->checkpoint);
  check_same_voice(resumed->checkpoint, saved, voice);
  voice.mel_mean = saved.mel_mean;
  voice.mel_std = saved.mel_std;
  voice.convolutions = saved.convolutions;
  return voice;
}

OptimizerSettings optimizer_settings(const TrainingConfig& training) {
  OptimizerSettings settings;
  settings.weight_decay = training.weight_decay;
  settings.clip_norm = training.gradient_clip;
  settings.ema_decay = training.ema_decay;
  return settings;
}

bool trains_vocoder(const Config& config) { return config.training.target == "vocoder"; }

std::unique_ptr<Trainable> make_trainable(const TrainInput& input, const VoiceDescription& description,
                                          const StepSettings& settings, const TrainListener& listener) {
  const OptimizerSettings optimizer = optimizer_settings(input.config.training);
  if (!trains_vocoder(input.config)) {
    return std::make_unique<VoiceTrainable>(description, optimizer, settings.policy.fused);
  }
  const MelSpec& mel = input.corpus.mel;
  const VocoderSpec spec = vocoder_spec(input.config.model.size, mel, description.mel_mean, description.mel_std);
  std::optional<TeacherMels> teacher;
  if (!input.teacher.empty()) {
    const Stopwatch clock;
    teacher = teacher_mels(input.teacher, input.corpus, input.config.data, settings.device, settings.seed);
    const std::string clips = counted(static_cast<uint64_t>((teacher->first >= 0).sum().item<int64_t>()), "clip");
    if (listener.say)
      listener.say(fmt::format("{} spoke {} in {:.1f} s", input.teacher.string(), clips, clock.seconds()));
  }
  return std::make_unique<VocoderTrainable>(
      spec, mel, optimizer, settings.policy.fused, settings.device,
      VocoderTrainable::Options{input.config.training.adversarial, description.to_metadata(), std::move(teacher)});
}

RunPosition begin_position(const Resumed& resumed, const RunPlan& plan, const RunLog& log) {
  RunPosition position = resumed.header.position;
  if (position.plan != plan.hash) {
    log.warn(
        "the corpus, its shapes or the seed are not those of {}: epoch {} begins anew. To fine-tune a finished "
        "voice on another corpus, give --from {} and a new --checkpoint-dir",
        resumed.checkpoint.string(), position.epoch, resumed.checkpoint.string());
    position.batch = 0;
    position.plan = plan.hash;
  }
  log.say("resumed from {}: step {}, epoch {}, batch {}", resumed.checkpoint.string(), position.step, position.epoch,
          position.batch);
  return position;
}

std::vector<std::pair<std::string, std::string>> report_settings(const TrainInput& input, const RunPlan& plan,
                                                                 int64_t parameters, at::Device device) {
  const TrainingConfig& training = input.config.training;
  return {{"corpus", input.corpus.folder.string()},
          {"size", fmt::format("{}, {:.1f} million parameters", input.config.model.size,
                               static_cast<double>(parameters) / 1e6)},
          {"device", device.str()},
          {"steps", fmt::format("{}", plan.total_steps)},
          {"shapes", fmt::format("{}, padding {:.1f} %", plan.shapes.shapes.size(), plan.shapes.padding * 100)},
          {"learning rate", fmt::format("{}", training.learning_rate)},
          {"tokens", input.corpus.text_tokens},
          {"seed", fmt::format("{}", training.seed)}};
}

// A vocoder may come without its discriminators, which speaking does not need.
TakenOver begin_with_vocoder(const fs::path& from, TrainingStep& step) {
  TakenOver taken;
  for (size_t group = 0; group < step.groups().size(); ++group) {
    const ParameterLayout& layout = *step.groups()[group].layout;
    if (!has_ema_weights(from, layout)) {
      taken.fresh.push_back("the " + step.groups()[group].name);
      continue;
    }
    const at::NoGradGuard no_gradients;
    const at::Tensor flat = load_ema_weights(from, layout);
    OptimizerState& state = step.states()[group];
    state.master.copy_(flat), state.ema.copy_(flat);
  }
  step.reload();
  return taken;
}

// A new run begins with another's weights if it is to.
std::optional<TakenOver> begin_with(const TrainInput& input, const VoiceDescription& voice, TrainingStep& step) {
  if (input.origin == nullptr || input.from.empty()) return std::nullopt;
  if (trains_vocoder(input.config)) return begin_with_vocoder(input.from, step);
  TakenOver taken =
      take_over(input.from, *input.origin, voice, input.corpus, static_cast<uint64_t>(input.config.training.seed));
  const at::NoGradGuard no_gradients;
  OptimizerState& state = step.states().front();
  state.master.copy_(taken.flat), state.ema.copy_(taken.flat);
  step.reload();
  return taken;
}

// A voice speaks through the vocoder of the voice that it began with, until another is put in its place.
void keep_vocoder(const TrainInput& input, const fs::path& folder, const RunLog& log) {
  const fs::path theirs = input.from.parent_path() / "vocoder.safetensors", ours = folder / "vocoder.safetensors";
  if (trains_vocoder(input.config) || !fs::exists(theirs) || fs::exists(ours)) return;
  const MappedFile file(theirs);
  write_file_atomically(ours, file.bytes());
  if (!file.whole()) {
    fs::remove(ours);
    fail("train", "{} was cut short while it was copied", theirs.string());
  }
  log.say("speaks through its vocoder, {}", ours.string());
}

void report_taken(const fs::path& from, const TakenOver& taken, const RunLog& log) {
  const auto list = [](const std::vector<std::string>& names) {
    constexpr size_t listed = 12;
    const auto first = std::span(names).first(std::min(names.size(), listed));
    return fmt::format("{}{}", fmt::join(first, ", "),
                       names.size() > listed ? fmt::format(" and {} more", names.size() - listed) : "");
  };
  log.say("begins with the weights of {}", from.string());
  if (!taken.fresh.empty()) log.say("not in it, so begun anew: {}", list(taken.fresh));
  if (!taken.unused.empty()) log.say("not taken: {}", list(taken.unused));
}

// The run's folder, for the rank that writes: locked, and an earlier run put aside.
struct OwnFolder {
  OwnFolder(const fs::path& folder, bool reset) {
    if (fs::is_directory(folder)) lock.emplace("train", folder);
    if (reset) aside = CheckpointFolder::set_aside(folder);
    if (lock && !aside) return;
    const CheckpointFolder made(folder, 1);
    lock.reset();
    lock.emplace("train", folder);
  }
  std::optional<FolderLock> lock;
  std::optional<fs::path> aside;
};

// A folder that is not shared would be found out when another rank becomes rank 0, in a later session.
void check_same_run(Ranks& ranks, const RunPlan& plan, const fs::path& folder, const std::optional<Resumed>& resumed) {
  const fs::path newest = resumed ? resumed->checkpoint.filename() : fs::path("none");
  check_same(ranks, RankFacts{{"the plan of batches", fmt::format("hash {:016x}", plan.hash)},
                              {"the number of steps", fmt::format("{}", plan.total_steps)},
                              {"the newest checkpoint",
                               !resumed || fs::exists(folder / newest) ? newest.string() : "not to be seen"}});
}

TrainSummary run(const TrainInput& input, const TrainListener& listener, const std::atomic<bool>& stop) {
  const TrainingConfig& training = input.config.training;
  const int number = input.mode.model_device;
  const at::Device device = torch_device(number);
  const int64_t rank_count = input.ranks != nullptr ? input.ranks->place().count : 1;
  const RunPlan plan = plan_run(input.config, input.corpus, input.validation, rank_count, [&](const std::string& text) {
    if (listener.warn) listener.warn(text);
  });
  const fs::path folder = run_folder(training);
  const bool writes = input.ranks == nullptr || input.ranks->writes();
  std::optional<OwnFolder> own;
  if (writes) own.emplace(folder, input.reset);
  if (input.ranks != nullptr) input.ranks->wait_for_all();
  CheckpointFolder checkpoints(folder, training.keep_checkpoints);
  if (writes) remove_leftovers(folder);
  const std::optional<Resumed> resumed = find_checkpoint(folder, input.ranks, listener);
  if (input.ranks != nullptr) check_same_run(*input.ranks, plan, folder, resumed);

  StepSettings settings;
  settings.device = device;
  settings.policy = step_policy(input.config, device.is_cuda());
  settings.accumulation = training.gradient_accumulation_steps;
  settings.seed = static_cast<uint64_t>(training.seed);
  settings.ranks = input.ranks;
  const VoiceDescription description = describe(input, resumed);
  const std::unique_ptr<Trainable> trainable = make_trainable(input, description, settings, listener);
  if (input.ranks != nullptr && training.rank_sum == "nccl") {
    input.ranks->sum_on_devices(number);
    settings.device_sum = input.ranks->device_sum();
  }
  TrainingStep step(*trainable, settings);
  if (resumed && writes) {
    load_checkpoint(resumed->checkpoint, step.groups(), step.states());
    step.reload();
  }
  const std::optional<TakenOver> taken = resumed || !writes ? std::nullopt : begin_with(input, description, step);
  if (input.ranks != nullptr) {
    broadcast(*input.ranks, step.states());
    step.reload();
    check_same(*input.ranks, step.states());
  }

  RunPosition position;
  position.plan = plan.hash;
  const int64_t begin_step = resumed ? resumed->header.position.step : 0;
  RunLog log(folder,
             training.tensorboard_log_dir.empty() ? folder / "tensorboard" : fs::path(training.tensorboard_log_dir),
             begin_step, writes, listener);
  if (own && own->aside) log.say("the earlier run is now in {}", own->aside->string());
  if (rank_count > 1) {
    log.say("{} ranks share the rows of every batch; {}", rank_count,
            settings.device_sum != nullptr ? device_sum_library() + " sums their gradients within the step"
                                           : "Gloo sums their gradients in host memory");
  } else if (input.ranks == nullptr && training.rank_sum != "host") {
    log.say("one process has nothing to sum: training.rank_sum is not used");
  }
  const int64_t parameters = step.groups().back().layout->parameters();  // of a vocoder those that are kept
  log.say("{} {} of {:.1f} million parameters on {} in {}", input.config.model.size, training.target,
          static_cast<double>(parameters) / 1e6, device.is_cpu() ? "the CPU" : device_name(number),
          settings.policy.bfloat16 ? "bfloat16 with float masters" : "float");
  const double hours = input.corpus.index.summary().hours();
  if (trains_vocoder(input.config)) {
    log.say("{:.2f} hours of speech: {} steps, learning rate {}", hours, plan.total_steps, training.learning_rate);
  } else {
    log.say("{:.2f} hours of speech as {}: {} steps, learning rate {}, dropout {}", hours, input.corpus.text_tokens,
            plan.total_steps, training.learning_rate, description.config.training.dropout);
  }
  if (taken) {
    report_taken(input.from, *taken, log);
    if (writes) keep_vocoder(input, folder, log);
  }
  if (!description.speakers.empty()) {
    log.say("{} in {}, condition dropout {}", counted(description.speakers.size(), "speaker"),
            counted(description.languages.size(), "language"), training.condition_dropout);
  }
  if (plan.patience > 0) log.say("stops early after {} validations in a row without improvement", plan.patience);
  if (resumed) position = begin_position(*resumed, plan, log);
  log.set_settings(report_settings(input, plan, parameters, device));
  if (writes) {
    write_file_atomically(folder / "config.yaml", config_to_yaml(description.config));
    write_file_atomically(folder / "vocabulary.json", description.vocabulary.to_json());
  }
  RunCheckpoints saved(checkpoints, step, trainable->metadata(), resumed ? begin_step : -1);
  return Loop({input, plan, *trainable, step, log, saved}, position, stop).run();
}

}  // namespace

TrainSummary train(const TrainInput& input, const TrainListener& listener, const std::atomic<bool>& stop) {
  const Config config = fit_settings(input.config, input.corpus.index.summary().hours(), !input.from.empty());
  try {
    return run({config, input.corpus, input.validation, input.mode, input.reset, input.voice, input.from, input.origin,
                input.teacher, input.ranks},
               listener, stop);
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
