#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/diagnose_command.h"
#include "cli/session_console.h"
#include "diagnose/page.h"
#include "diagnose/recommend.h"
#include "diagnose/report.h"
#include "session/bottleneck_session.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  BottleneckOptions wanted;
  std::string html_file, apply_file;
  ConfigFlags flags;
};

void check_options(const Options& options) {
  options.wanted.validate();
  if (!options.apply_file.empty() && options.apply_file == options.flags.file) {
    reject_input("diagnose", "--apply {} is the file of --config, which stays as it is", options.apply_file,
                 way_out("name another"));
  }
}

void write_page(const BottleneckRun& run, const Config& config, const std::string& file) {
  const Observation& seen = run.observation;
  DiagnosisPage page;
  page.title = fmt::format("What limits {}", run.planned.corpus.folder.lexically_normal().filename().string());
  page.facts = {{"corpus", config.data.train_data},
                {"consumer", seen.consumer},
                {"batches", fmt::format("{} in {:.1f} s", seen.batches.size(), seen.wall_s)},
                {"batch size", fmt::format("{}", config.data.batch_size.low)},
                {"processors used", fmt::format("{:.1f} of {}", seen.cpu_s / seen.wall_s, run.setup.cores)}};
  for (auto& fact : startup_facts(run.feed, config, run.planned.plan)) page.facts.push_back(std::move(fact));
  page.charts = observation_charts(seen, run.setup, run.planned.plan.shapes());
  write_file_atomically(file, make_diagnosis_page(run.diagnosis, page));
}

int run_diagnose_bottleneck(const Options& options, const std::string& json_file, const Console& console) {
  check_options(options);
  const Config config = options.flags.load().values;
  SessionConsole session(console);
  const BottleneckRun run = observe_bottleneck(options.wanted, config, session.listener());
  const Observation& seen = run.observation;
  const bool cut_short = seen.batches.size() < static_cast<size_t>(options.wanted.batches);
  console.info("{} of {}; consumer: {}{}\n", counted(seen.batches.size(), "batch", "batches"), config.data.train_data,
               seen.consumer,
               cut_short ? fmt::format("; no more of them in {:g} s, see --seconds", options.wanted.seconds) : "");
  for (const std::string& line : diagnosis_lines(run.diagnosis)) console.info("{}", line);
  if (!json_file.empty()) {
    nlohmann::ordered_json json = diagnosis_json(run.diagnosis);
    json["consumer"] = seen.consumer, json["batches"] = seen.batches.size();
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  if (!options.html_file.empty()) {
    write_page(run, config, options.html_file);
    console.info("\npage: {}", options.html_file);
  }
  if (!options.apply_file.empty()) {
    write_file_atomically(options.apply_file, apply_recommendations(config, run.diagnosis.recommendations));
    console.info("\nthe settings with what is recommended: {}; use them with --config", options.apply_file);
  }
  return run.diagnosis.healthy ? 0 : 1;
}

}  // namespace

void add_diagnose_bottleneck(CLI::App& diagnose, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = diagnose.add_subcommand(
      "bottleneck", "why is the GPU waiting? Feeds the corpus to the model, or to a consumer of a given speed");
  command->add_option("--num-batches", options->wanted.batches, "how many to look at")
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--consumer-ms", options->wanted.consumer_ms,
                   "what a step takes, instead of the model's own steps [the model]")
      ->check(CLI::NonNegativeNumber)
      ->type_name("MS");
  command->add_option("--seconds", options->wanted.seconds, "end by then, with fewer batches where each takes long")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->type_name("S");
  command
      ->add_option("--run", options->wanted.run_folder, "a finished run whose step times to use instead of the model")
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
      return run_diagnose_bottleneck(*options, program.json_file, console);
    };
  });
}

}  // namespace myxtts
