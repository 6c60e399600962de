#include "base/files.h"
#include "cli/commands.h"
#include "features/mel_spec.h"
#include "settings/settings.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

int print_config(const ResolvedConfig& config, const std::string& json_file) {
  resolve_mel_spec(config.values);  // throws what the mel settings cannot be
  nlohmann::ordered_json json;
  std::string section;
  for (const Field& field : config_fields()) {
    if (field.section != section) fmt::print("{}:\n", section = field.section);
    const auto found = config.sources.find(field.name());
    const std::string source = (found == config.sources.end() ? Source{} : found->second).to_string();
    const std::string value = value_text(field, config.values);
    fmt::print("  {:<29}{:<21}{}\n", field.key, value, source);
    json[field.section][field.key] = {{"value", value}, {"source", source}};
  }
  for (const auto& [name, settings] : config.values.mel_presets) {
    fmt::print("mel_presets.{}: {} settings\n", name, settings.size());
    json["mel_presets"][name] = settings;
  }
  if (!json_file.empty()) write_file_atomically(json_file, json.dump(2) + "\n");
  return 0;
}

int print_keys() {
  for (const Field& field : config_fields()) {
    const std::string old =
        field.old_names.empty() ? "" : fmt::format(" (old name: {})", fmt::join(field.old_names, ", "));
    fmt::print("{}{}\n    {}\n    {}; default {}{}\n", field.name(), old, field.meaning, allowed_text(field),
               value_text(field, Config{}), field.flag.empty() ? "" : "; flag " + field.flag);
  }
  return 0;
}

}  // namespace

void add_config_command(CLI::App& app, Program& program) {
  CLI::App* config = app.add_subcommand("config", "the settings: what they are and where each value comes from");
  config->require_subcommand(1);

  CLI::App* print = config->add_subcommand("print", "the resolved configuration, each value with its source");
  const auto flags = std::make_shared<ConfigFlags>();
  add_config_flags(*print, *flags);
  add_json_option(*print, program);
  print->callback([&program, flags] {
    program.run = [&program, flags](Console&) { return print_config(flags->load(), program.json_file); };
  });

  CLI::App* keys = config->add_subcommand("keys", "every setting, what it means and what it may be");
  keys->callback([&program] { program.run = [](Console&) { return print_keys(); }; });
}

}  // namespace myxtts
