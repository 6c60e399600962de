#include "base/files.h"
#include "cli/commands.h"
#include "features/mel_spec.h"
#include "settings/reference.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

int print_config(const ResolvedConfig& config, const std::string& json_file) {
  resolve_mel_spec(config.values);  // throws what the mel settings cannot be
  nlohmann::ordered_json json;
  std::string section;
  for (const Setting& setting : all_settings()) {
    if (setting.section != section) fmt::print("{}:\n", section = setting.section);
    const auto found = config.sources.find(setting.name());
    const std::string source = (found == config.sources.end() ? Source{} : found->second).to_string();
    const std::string value = value_text(setting, config.values);
    fmt::print("  {:<29}{:<21}{}\n", setting.key, value, source);
    json[setting.section][setting.key] = {{"value", value}, {"source", source}};
  }
  for (const auto& [name, settings] : config.values.mel_presets) {
    fmt::print("mel_presets.{}: {} settings\n", name, settings.size());
    json["mel_presets"][name] = settings;
  }
  if (!json_file.empty()) write_file_atomically(json_file, json.dump(2) + "\n");
  return 0;
}

struct KeysOptions {
  std::string language = "en", command, group;
  bool markdown = false;
};

void add_config_keys(CLI::App& config, Program& program) {
  CLI::App* keys = config.add_subcommand("keys", "the reference: every setting, its flag, default and allowed values");
  const auto options = std::make_shared<KeysOptions>();
  const auto choice = [&](const char* flag, std::string& value, const std::vector<std::string>& names,
                          const char* help) {
    keys->add_option(flag, value, fmt::format("{}: {}", help, fmt::join(names, ", ")))
        ->check(CLI::IsMember(names).description(""))
        ->type_name("NAME");
  };
  choice("--language", options->language, {"en", "fa"}, "language of the help texts");
  choice("--command", options->command, command_names(), "only the settings that this command takes");
  choice("--group", options->group, setting_groups(), "only one group of settings");
  keys->add_flag("--markdown", options->markdown, "print a Markdown table");
  keys->callback([&program, options] {
    program.run = [options](Console&) {
      const PageLanguage language = options->language == "fa" ? PageLanguage::fa : PageLanguage::en;
      fmt::print("{}", settings_reference({language, options->markdown, options->command, options->group}));
      return 0;
    };
  });
}

}  // namespace

void add_config_command(CLI::App& app, Program& program) {
  CLI::App* config = app.add_subcommand("config", "the settings: what they are and where each value comes from");
  config->require_subcommand(1);

  CLI::App* print = config->add_subcommand("print", "the resolved configuration, each value with its source");
  const auto flags = std::make_shared<ConfigFlags>();
  add_config_flags(*print, *flags, Command::all);
  add_json_option(*print, program);
  print->callback([&program, flags] {
    program.run = [&program, flags](Console&) { return print_config(flags->load(), program.json_file); };
  });

  add_config_keys(*config, program);
}

}  // namespace myxtts
