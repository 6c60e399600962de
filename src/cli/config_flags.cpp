#include "cli/commands.h"

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

const char* group_title(const Setting& setting) {
  return setting.section == "data" ? "Data" : setting.section == "model" ? "Model" : "Training";
}

void add_option(CLI::App& app, ConfigFlags& flags, const Setting& setting) {
  const std::string& flag = setting.flags.front();
  app.add_option_function<std::string>(
         fmt::format("{}", fmt::join(setting.flags, ",")),
         [&flags, &flag, &setting](const std::string& text) {
           flags.values.push_back({flag, setting.name(), text});
         },
         fmt::format("{} [{}]", setting.help.en, value_text(setting, Config{})))
      ->type_name("")
      ->group(group_title(setting));
}

void add_switch(CLI::App& app, ConfigFlags& flags, const Setting& setting) {
  const auto add = [&](const std::string& names, const char* value, const std::string& help) {
    const FlagValue given{names.substr(0, names.find(',')), setting.name(), value};
    app.add_flag_callback(
           names, [&flags, given] { flags.values.push_back(given); }, help)
        ->group(group_title(setting));
  };
  const bool on = value_text(setting, Config{}) == "true";
  add(fmt::format("{}", fmt::join(setting.flags, ",")), "true",
      fmt::format("{}{}", setting.help.en, on ? " (default)" : ""));
  if (!setting.off_flag.empty()) add(setting.off_flag, "false", setting.off_help.en);
}

}  // namespace

void add_config_flags(CLI::App& app, ConfigFlags& flags, Command command) {
  app.add_option("--config", flags.file, "YAML file of settings")->type_name("FILE")->group("Configuration");
  app.add_option("--preset", flags.preset,
                 fmt::format("settings to build on: {}", fmt::join(config_preset_names(), ", ")))
      ->type_name("NAME")
      ->group("Configuration");
  for (const Setting& setting : all_settings()) {
    if (setting.flags.empty() || !setting.taken_by(command)) continue;
    if (setting.is_switch()) {
      add_switch(app, flags, setting);
    } else {
      add_option(app, flags, setting);
    }
  }
}

}  // namespace myxtts
