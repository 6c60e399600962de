#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/corpus_flags.h"
#include "cli/diagnose_command.h"
#include "demo/demo_corpus.h"
#include "diagnose/retracing.h"
#include "plan/shapes.h"
#include "train/step_consumer.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

struct Options {
  int64_t steps = 10;
  ConfigFlags flags;
};

// A corpus for those who have none at hand, gone afterwards.
class TemporaryCorpus {
 public:
  explicit TemporaryCorpus(int64_t batch_size)
      : folder_(fs::temp_directory_path() / fmt::format("myxtts-retracing-{}", ::getpid())) {
    DemoCorpusSettings settings;
    constexpr int64_t fewest = 48;
    settings.clips = static_cast<int>(std::clamp<int64_t>(3 * batch_size, fewest, 1000));
    make_demo_corpus(folder_, settings, [](int) {});
  }
  ~TemporaryCorpus() {
    std::error_code none;
    fs::remove_all(folder_, none);
  }
  TemporaryCorpus(const TemporaryCorpus&) = delete;
  TemporaryCorpus& operator=(const TemporaryCorpus&) = delete;

  std::string folder() const { return folder_.string(); }

 private:
  fs::path folder_;
};

void run_steps(RetracingReport& report, const Config& config, int64_t steps, const Console& console) {
  const Mode mode = choose_mode_loudly(config, console);
  const Corpus corpus = open_corpus_loudly(config.data.train_data, config, {}, console);
  if (corpus.index.size() == 0) {
    reject_input("diagnose", "{} has no clip that can be used; see `prepare`", config.data.train_data);
  }
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).shapes,
                       static_cast<uint64_t>(config.training.seed));
  if (plan.batches_per_epoch() == 0) {
    reject_input("diagnose", "{} has {} clips, too few for a batch of {}; give a smaller --batch-size",
                 config.data.train_data, corpus.index.size(), config.data.batch_size.low);
  }
  StepConsumer model(config, corpus, plan, mode);
  const Consumer consumer = model.consumer();
  const std::unique_ptr<BatchSource> source = open_feed(plan_feed(config, corpus, plan, mode), corpus, plan);
  ProgressBar bar(console, "stepping", static_cast<uint64_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const LoadedBatch& batch = source->next(consumer.stream);
    const Stopwatch clock;
    consumer.consume(batch);
    report.step_s.push_back(clock.seconds());
    bar.update(static_cast<uint64_t>(i) + 1);
  }
  if (steps > 1) report.step_s.erase(report.step_s.begin());  // libraries make what they keep in the first
  report.steps = steps;
  report.captures = model.captures(), report.retraces = model.retraces(), report.changes = model.changes();
  report.captured = mode.model_device >= 0 && config.training.enable_graph_mode && config.data.pad_to_fixed_length &&
                    !config.training.enable_eager_debug;
  for (const StepSignature& seen : model.shapes()) {
    const bool declared = config.data.pad_to_fixed_length &&
                          std::any_of(plan.shapes().begin(), plan.shapes().end(), [&](const Shape& shape) {
                            return seen.rows == shape.batch_size && seen.text_length == shape.text_length &&
                                   seen.mel_frames == shape.mel_frames;
                          });
    report.shapes.push_back({seen.rows, seen.text_length, seen.mel_frames, corpus.mel.n_mels, declared});
  }
}

int diagnose_retracing(const Options& options, const std::string& json_file, const Console& console) {
  if (options.steps < 1) reject_input("diagnose", "--steps is {}; it must be at least 1", options.steps);
  if (!options.flags.file.empty() && !fs::exists(options.flags.file)) {
    reject_input("diagnose", "{}: No such file; --config names a YAML file", options.flags.file);
  }
  RetracingReport report;
  std::optional<Config> config;
  try {
    config = options.flags.load().values;
    report.problems = retracing_problems(*config);
  } catch (const Error& error) {
    report.problems.push_back(problem_of_error(error));
  }
  std::optional<TemporaryCorpus> demo;
  if (config) {
    report.corpus = config->data.train_data;
    if (config->data.train_data.empty()) {
      demo.emplace(config->data.batch_size.low);
      config->data.train_data = demo->folder();
      report.corpus = "a small one made for this, since no --train-data is given";
    }
    run_steps(report, *config, options.steps, console);
  }
  for (const std::string& line : retracing_lines(report)) console.info("{}", line);
  if (!json_file.empty()) write_file_atomically(json_file, retracing_json(report).dump(2) + "\n");
  return report.healthy() ? 0 : 1;
}

}  // namespace

void add_diagnose_retracing(CLI::App& diagnose, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      diagnose.add_subcommand("retracing", "will the step be captured again and again? Checks the config, takes steps");
  command->add_option("--steps", options->steps, "how many to take")->capture_default_str()->type_name("N");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags, Command::diagnose);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) {
      return diagnose_retracing(*options, program.json_file, console);
    };
  });
}

}  // namespace myxtts
