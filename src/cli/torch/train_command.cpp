#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/corpus_flags.h"
#include "device/device.h"
#include "plan/shapes.h"
#include "settings/config_file.h"
#include "train/memory_plan.h"
#include "train/train.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace myxtts {
namespace {

struct Options {
  ConfigFlags flags;
  bool reset = false, resume = false;
};

std::atomic<bool> stop_requested = false;

// The first asks for a tidy end, the second takes one at once.
void on_signal(int signal) {
  if (stop_requested.exchange(true)) ::_exit(128 + signal);
  constexpr char text[] = "\nstopping after this step; once more to leave at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof(text) - 1);
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

// epoch, loss, speed, input wait, GPU busy and retraces, as far as they are known.
std::string status_text(const StepReport& last) {
  if (last.step == 0) return "";
  return fmt::format("epoch {}  loss {:.3f}  {:.1f} clips/s  {:.0f} s audio/s  wait {:.1f} %  {}retraces {}",
                     last.epoch, last.figures.loss, last.samples_per_s, last.audio_s_per_s,
                     100 * last.input_wait_ms / std::max(1e-9, last.step_ms),
                     last.gpu_busy ? fmt::format("GPU {:.0f} %  ", 100 * *last.gpu_busy) : "", last.retraces);
}

// Settings of the user's own that change nothing yet: said, not ignored.
void say_what_has_no_effect(const ResolvedConfig& config, const Console& console) {
  if (config.values.training.optimization_level == "experimental") {
    console.warn("--optimization-level experimental is the same as enhanced: nothing is on trial");
  }
}

// What the run in a checkpoint folder was trained with: one that goes on goes on with it.
std::optional<int64_t> earlier_batch_size(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.yaml";
  if (!std::filesystem::exists(file)) return std::nullopt;
  return config_from_yaml(read_text_file(file, 1 << 20), file.string()).data.batch_size.low;
}

// Of a range of batch sizes the largest that memory allows.
void settle_batch_size(Config& config, const Corpus& corpus, const Mode& mode, bool reset, const Console& console) {
  IntRange& range = config.data.batch_size;
  if (range.fixed() || config.data.batch_frames > 0 || corpus.index.size() == 0) return;
  const TrainingConfig& training = config.training;
  const auto earlier = reset ? std::nullopt : earlier_batch_size(training.checkpoint_dir);
  if (earlier && *earlier >= range.low && *earlier <= range.high) {
    console.info("batch size {} of {}-{}, as in the run so far", *earlier, range.low, range.high);
    range = {*earlier, *earlier};
    return;
  }
  const bool gpu = mode.model_device >= 0;
  const ShapePlan plan = plan_shapes(corpus.index.lengths(), config.data);
  StepMemory step;
  step.size = model_size(config.model.size);
  int64_t clips = 0;
  for (const Shape& shape : plan.shapes) {
    step.frames = std::max(step.frames, shape.mel_frames), step.tokens = std::max(step.tokens, shape.text_length);
    clips += static_cast<int64_t>(shape.clips.size());
  }
  const IntRange possible{range.low, std::max(range.low, std::min(range.high, clips))};
  step.n_mels = corpus.mel.n_mels;
  step.half = gpu && training.optimization_level != "basic";
  step.fused = training.enable_fused_kernels && !training.enable_eager_debug && (step.half || !gpu);
  const auto bytes =
      static_cast<double>(gpu ? device_memory(mode.model_device).free_bytes : host_memory().available_bytes);
  constexpr double share = 0.6;  // clips that are cached take up to a quarter, batches that are ready some more
  const int64_t chosen = fitting_batch_size(possible, step, share * bytes);
  console.info("batch size {} of {}-{}: a step takes about {:.1f} GB, {} has {:.1f} GB free", chosen, range.low,
               range.high, step.bytes(chosen) / 1e9, gpu ? "the GPU" : "the machine", bytes / 1e9);
  range = {chosen, chosen};
}

int run_train(const Options& options, const std::string& json_file, const Console& console) {
  ResolvedConfig config = options.flags.load();
  const DataConfig& data = config.values.data;
  if (data.train_data.empty()) reject_input("train", "no corpus is named; give --train-data DIR");
  if (options.reset && options.resume) reject_input("train", "--resume and --reset-training are opposites; give one");
  say_what_has_no_effect(config, console);
  const Mode mode = choose_mode_loudly(config.values, console);
  const Corpus corpus = open_corpus_loudly(data.train_data, config.values, {}, console);
  const size_t rejected = corpus.index.summary().rejected.size();
  if (rejected > 0) {
    console.warn("{} of {} not used; `myxtts prepare {}` lists them with their reasons", counted(rejected, "clip"),
                 rejected + corpus.index.size(), data.train_data);
  }
  if (const size_t speakers = corpus.index.summary().speakers.size(); speakers > 1) {
    console.warn("{} has {} speakers; they all become one voice", data.train_data, speakers);
  }
  std::optional<Corpus> validation;
  if (!data.val_data.empty()) {
    const std::set<char32_t> symbols = corpus.vocabulary.symbols();
    PrepareOptions prepare;
    prepare.symbols = &symbols;
    Config other = config.values;
    other.data.vocabulary.clear();
    validation.emplace(open_corpus_loudly(data.val_data, other, prepare, console));
  }
  settle_batch_size(config.values, corpus, mode, options.reset, console);
  catch_signals();

  std::mutex mutex;  // the loader's threads speak too
  std::unique_ptr<ProgressBar> bar;
  const bool drawn = console.shows_progress();
  TrainListener listener;
  listener.say = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    bar.reset();
    console.info("{}", text);
  };
  listener.warn = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    bar.reset();
    console.warn("{}", text);
  };
  listener.step = [&](int64_t step, int64_t total, const StepReport& last) {
    const std::lock_guard lock(mutex);
    if (!bar) bar = std::make_unique<ProgressBar>(console, "training", static_cast<uint64_t>(total));
    bar->update(static_cast<uint64_t>(step), status_text(last));
  };
  const Stopwatch since;
  double told_s = -1e9;
  listener.logged = [&](const StepReport& report) {
    constexpr double every_s = 10;  // plain lines where nobody watches a bar
    if (drawn || since.seconds() - told_s < every_s) return;
    told_s = since.seconds();
    const std::lock_guard lock(mutex);
    console.info("step {}  {}", report.step, status_text(report));
  };
  const TrainSummary summary = train({config.values, corpus, validation ? &*validation : nullptr, mode, options.reset},
                                     listener, stop_requested);
  bar.reset();
  if (summary.session_steps == 0) {
    console.info("nothing to do: {}",
                 summary.stopped_early
                     ? "it stopped early, as training.early_stopping says"
                     : fmt::format("all {} steps are done; more of them with --epochs or --max-steps", summary.steps));
  } else {
    console.info("{} {} of {} steps in {}; loss {:.4f} at first, {:.4f} at last; input wait {:.2f} %; {} retraces",
                 summary.interrupted ? "stopped after" : "done:", summary.steps, summary.total_steps,
                 duration_text(summary.seconds), summary.first_loss, summary.last_loss, summary.input_wait * 100,
                 summary.retraces);
  }
  console.info("checkpoint: {}\nreport:     {}", summary.checkpoint.string(), summary.report.string());
  if (summary.interrupted) console.info("the same command goes on from there");
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {{"steps", summary.steps},
                                         {"total_steps", summary.total_steps},
                                         {"first_loss", summary.first_loss},
                                         {"last_loss", summary.last_loss},
                                         {"best_validation", summary.best_validation},
                                         {"seconds", summary.seconds},
                                         {"input_wait", summary.input_wait},
                                         {"captures", summary.captures},
                                         {"retraces", summary.retraces},
                                         {"skipped", summary.skipped},
                                         {"interrupted", summary.interrupted},
                                         {"stopped_early", summary.stopped_early},
                                         {"checkpoint", summary.checkpoint.string()},
                                         {"report", summary.report.string()}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_train_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("train", "train a voice; goes on by itself where an earlier run stopped");
  command->add_flag("--resume", options->resume, "go on from the newest checkpoint (as it does anyway)");
  command->add_flag("--reset-training", options->reset, "put an earlier run aside, deleting nothing, and begin anew");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags, Command::train);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return run_train(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
