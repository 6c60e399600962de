#include "base/error.h"
#include "base/files.h"
#include "cli/diagnose_command.h"
#include "diagnose/page.h"
#include "diagnose/report.h"
#include "diagnose/run_diagnosis.h"
#include "settings/config_file.h"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string folder, html_file;
};

int diagnose_report(const Options& options, const std::string& json_file, const Console& console) {
  const std::filesystem::path folder = options.folder;
  const RunRecord run = read_run(folder);
  std::optional<Config> config;
  if (const auto file = folder / "config.yaml"; std::filesystem::exists(file)) {
    constexpr uint64_t longest = 1 << 20;
    config = config_from_yaml(read_text_file(file, longest), file.string());
  }
  const Diagnosis found = diagnose_run(run, config);
  for (const std::string& line : diagnosis_lines(found)) console.info("{}", line);
  if (!json_file.empty()) write_file_atomically(json_file, diagnosis_json(found).dump(2) + "\n");
  if (!options.html_file.empty()) {
    DiagnosisPage page;
    page.title = fmt::format("What limited {}", run.name);
    page.facts = {{"run", std::filesystem::absolute(folder).lexically_normal().string()},
                  {"steps", fmt::format("{:.0f}", run.metrics.at("step_ms").back().x)}};
    if (config) {
      page.facts.emplace_back("corpus", config->data.train_data);
      page.facts.emplace_back("model", config->model.size);
      page.facts.emplace_back("batch size", fmt::format("{}", config->data.batch_size.low));
    }
    page.charts = run_charts(run);
    write_file_atomically(options.html_file, make_diagnosis_page(found, page));
    console.info("\npage: {}", options.html_file);
  }
  return found.healthy ? 0 : 1;
}

}  // namespace

void add_diagnose_report(CLI::App& diagnose, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = diagnose.add_subcommand("report", "the same from what a run has left behind");
  command->add_option("DIR", options->folder, "folder of the run, with its metrics.jsonl")->required()->type_name("");
  command->add_option("--html", options->html_file, "write a page with charts to this file")->type_name("FILE");
  add_json_option(*command, program);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) {
      return diagnose_report(*options, program.json_file, console);
    };
  });
}

}  // namespace myxtts
