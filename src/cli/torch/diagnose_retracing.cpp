#include "base/error.h"
#include "base/files.h"
#include "cli/diagnose_command.h"
#include "cli/session_console.h"
#include "session/torch/retracing_session.h"

#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  int64_t steps = 10;
  ConfigFlags flags;
};

int diagnose_retracing(const Options& options, const std::string& json_file, const Console& console) {
  if (options.steps < 1) reject_input("diagnose", "--steps is {}", options.steps, way_out("it must be at least 1"));
  if (!options.flags.file.empty() && !std::filesystem::exists(options.flags.file)) {
    reject_input("diagnose", "{}: No such file", options.flags.file, way_out("--config names a YAML file"));
  }
  RetracingReport report;
  std::optional<Config> config;
  try {
    config = options.flags.load().values;
    report.problems = retracing_problems(*config);
  } catch (const Error& error) {
    report.problems.push_back(problem_of_error(error));
  }
  SessionConsole session(console);
  if (config) observe_retracing(report, *config, options.steps, session.listener());
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
