#include "artifacts/run_report.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/corpus_flags.h"
#include "cli/diagnose_command.h"
#include "cli/model_consumer.h"
#include "diagnose/machine.h"
#include "diagnose/observation.h"
#include "diagnose/page.h"
#include "diagnose/recommend.h"
#include "diagnose/report.h"
#include "diagnose/setup.h"
#include "plan/shapes.h"

#include <chrono>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  int64_t batches = 50;
  double consumer_ms = -1;  // -1: not given
  double seconds = 20;
  std::string run_folder, html_file, apply_file;
  ConfigFlags flags;
};

// Leaves the processors alone, as a step on a GPU does.
Consumer waiting_consumer(double ms, std::string name) {
  Consumer consumer;
  consumer.name = std::move(name);
  consumer.consume = [ms](const LoadedBatch&) {
    if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  };
  return consumer;
}

// What a batch took a run that has been, without its waiting.
double recorded_ms(const std::filesystem::path& folder) {
  const RunRecord run = read_run(folder);
  const auto step = run.metrics.find("step_ms"), wait = run.metrics.find("input_wait_ms");
  if (step == run.metrics.end() || wait == run.metrics.end()) {
    reject_input("diagnose", "{} has no step times", (folder / "metrics.jsonl").string(),
                 way_out("is it the folder of a run?"));
  }
  std::vector<double> net;
  for (size_t i = 0; i < step->second.size() && i < wait->second.size(); ++i) {
    net.push_back(step->second[i].y - wait->second[i].y);
  }
  double batches = 1;
  if (const auto config = folder / "config.yaml"; std::filesystem::exists(config)) {
    constexpr uint64_t longest = 1 << 20;
    batches = static_cast<double>(
        config_from_yaml(read_text_file(config, longest), config.string()).training.gradient_accumulation_steps);
  }
  return spread_of(net).p50 / batches;
}

ModelConsumer choose_consumer(const Options& options, const Config& config, const Corpus& corpus, const BatchPlan& plan,
                              const Mode& mode, const Console& console) {
  if (options.consumer_ms >= 0) {
    return {waiting_consumer(options.consumer_ms,
                             fmt::format("{:g} ms a batch, as --consumer-ms says", options.consumer_ms)),
            nullptr};
  }
  if (!options.run_folder.empty()) {
    const double ms = recorded_ms(options.run_folder);
    return {waiting_consumer(ms, fmt::format("{:.1f} ms a batch, as {} has recorded", ms, options.run_folder)),
            nullptr};
  }
  if (auto model = make_model_consumer(config, corpus, plan, mode)) return *std::move(model);
  console.warn("this build has no libtorch, so no model takes the batches; give --consumer-ms or --run for its time");
  return {waiting_consumer(0, "nothing: each batch is taken at once"), nullptr};
}

void check_options(const Options& options) {
  if (options.batches < 8)
    reject_input("diagnose", "--num-batches is {}", options.batches, way_out("a verdict needs at least 8"));
  if (options.consumer_ms >= 0 && !options.run_folder.empty()) {
    reject_input("diagnose", "--consumer-ms and --run both name the consumer", way_out("give one"));
  }
  if (!options.apply_file.empty() && options.apply_file == options.flags.file) {
    reject_input("diagnose", "--apply {} is the file of --config, which stays as it is", options.apply_file,
                 way_out("name another"));
  }
}

int diagnose_bottleneck(const Options& options, const std::string& json_file, const Console& console) {
  check_options(options);
  const Config config = options.flags.load().values;
  const DataConfig& data = config.data;
  if (data.train_data.empty()) reject_input("diagnose", "no corpus is named", way_out("give --train-data DIR"));
  const Mode mode = choose_mode_loudly(config, console);
  const Corpus corpus = open_corpus_loudly(data.train_data, config, {}, console);
  if (corpus.index.size() == 0) {
    reject_input("diagnose", "{} has no clip that can be used", data.train_data, way_out("see `prepare`"));
  }
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), data).shapes, static_cast<uint64_t>(config.training.seed));
  if (plan.batches_per_epoch() == 0) {
    reject_input("diagnose", "{} has {} clips, too few for a batch of {}", data.train_data, corpus.index.size(),
                 data.batch_size.low, way_out("give a smaller --batch-size"));
  }
  const Feed feed = plan_feed(config, corpus, plan, mode);
  const ModelConsumer model = choose_consumer(options, config, corpus, plan, mode, console);
  ObserveOptions wanted;
  wanted.batches = static_cast<size_t>(options.batches), wanted.device = mode.model_device;
  wanted.seconds = options.seconds;
  ProgressBar bar(console, "observing", wanted.batches);
  wanted.progress = [&](size_t done) { bar.update(done); };
  // Opened last: a ring that is full before the first batch is taken would hide what follows.
  const Observation seen =
      observe(open_feed_loudly(feed, config, corpus, plan, console), model.consumer, corpus, wanted);
  const PipelineSetup setup = setup_of(config, feed, corpus);
  MachineView machine = view_machine(data.train_data, bytes_of(corpus));
  if (mode.model_device >= 0) view_gpu(machine, mode.model_device);  // while it is still warm
  Diagnosis found = diagnose(seen, setup);
  found.checks = check_list(setup, machine);

  console.info(
      "{} of {}; consumer: {}{}\n", counted(seen.batches.size(), "batch", "batches"), data.train_data, seen.consumer,
      seen.batches.size() < wanted.batches ? fmt::format("; no more of them in {:g} s, see --seconds", options.seconds)
                                           : "");
  for (const std::string& line : diagnosis_lines(found)) console.info("{}", line);
  if (!json_file.empty()) {
    nlohmann::ordered_json json = diagnosis_json(found);
    json["consumer"] = seen.consumer, json["batches"] = seen.batches.size();
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  if (!options.html_file.empty()) {
    DiagnosisPage page;
    page.title = fmt::format("What limits {}", corpus.folder.lexically_normal().filename().string());
    page.facts = {{"corpus", data.train_data},
                  {"consumer", seen.consumer},
                  {"batches", fmt::format("{} in {:.1f} s", seen.batches.size(), seen.wall_s)},
                  {"batch size", fmt::format("{}", data.batch_size.low)},
                  {"processors used", fmt::format("{:.1f} of {}", seen.cpu_s / seen.wall_s, setup.cores)}};
    for (const auto& [name, text] : startup_facts(feed, config, plan)) page.facts.emplace_back(name, text);
    page.charts = observation_charts(seen, setup, plan.shapes());
    write_file_atomically(options.html_file, make_diagnosis_page(found, page));
    console.info("\npage: {}", options.html_file);
  }
  if (!options.apply_file.empty()) {
    write_file_atomically(options.apply_file, apply_recommendations(config, found.recommendations));
    console.info("\nthe settings with what is recommended: {}; use them with --config", options.apply_file);
  }
  return found.healthy ? 0 : 1;
}

}  // namespace

void add_diagnose_bottleneck(CLI::App& diagnose, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = diagnose.add_subcommand(
      "bottleneck", "why is the GPU waiting? Feeds the corpus to the model, or to a consumer of a given speed");
  command->add_option("--num-batches", options->batches, "how many to look at")->capture_default_str()->type_name("N");
  command
      ->add_option("--consumer-ms", options->consumer_ms,
                   "what a step takes, instead of the model's own steps [the model]")
      ->check(CLI::NonNegativeNumber)
      ->type_name("MS");
  command->add_option("--seconds", options->seconds, "end by then, with fewer batches where each takes long")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->type_name("S");
  command->add_option("--run", options->run_folder, "a finished run whose step times to use instead of the model")
      ->type_name("DIR");
  command->add_option("--html", options->html_file, "write a page with charts to this file")->type_name("FILE");
  command
      ->add_option("--apply", options->apply_file,
                   "write the settings with what is recommended to this file; yours stays as it is")
      ->type_name("FILE");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags, Command::diagnose);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) {
      return diagnose_bottleneck(*options, program.json_file, console);
    };
  });
}

}  // namespace myxtts
