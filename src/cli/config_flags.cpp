#include "cli/commands.h"
#include "settings/settings.h"

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

struct Switch {
  const char* flag;
  const char* setting;
  const char* value;
  const char* meaning;
};

// Flags without a value: one setting each, on or off.
constexpr Switch switches[] = {
    {"--enable-static-shapes,--pad-to-fixed-length", "data.pad_to_fixed_length", "true",
     "every batch has a declared shape (default)"},
    {"--disable-static-shapes", "data.pad_to_fixed_length", "false",
     "shapes follow the clips; every new one is a retrace"},
    {"--trim-silence", "data.trim_silence", "true", "leave out the silence at both ends of a clip"},
    {"--prefetch-to-gpu", "data.prefetch_to_gpu", "true", "keep ready batches in GPU memory (default)"},
    {"--no-prefetch-to-gpu", "data.prefetch_to_gpu", "false", "keep ready batches in host memory"},
    {"--enable-eager-debug", "training.enable_eager_debug", "true", "no capture; names and shapes in errors"},
};

}  // namespace

void add_config_flags(CLI::App& command, ConfigFlags& flags, const std::vector<std::string>& keys) {
  const auto used = [&](const std::string& key) {
    return keys.empty() || std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  command.add_option("--config", flags.file, "YAML file of settings")->type_name("FILE")->group("Configuration");
  command
      .add_option("--preset", flags.preset,
                  fmt::format("settings to build on: {}", fmt::join(config_preset_names(), ", ")))
      ->type_name("NAME")
      ->group("Configuration");
  for (const Field& field : config_fields()) {
    Config any;
    if (field.flag.empty() || !used(field.key) || std::holds_alternative<bool*>(field.address(any))) continue;
    command
        .add_option_function<std::string>(
            field.flag,
            [&flags, &field](const std::string& text) {
              flags.values.push_back({field.flag, field.name(), text});
            },
            fmt::format("{} [{}]", field.meaning, value_text(field, Config{})))
        ->type_name("")
        ->group(field.section == "data"    ? "Data"
                : field.section == "model" ? "Model"
                                           : "Training");
  }
  for (const Switch& item : switches) {
    if (!used(find_field(item.setting)->key)) continue;
    const std::string_view names = item.flag;
    const FlagValue value{std::string(names.substr(0, names.find(','))), item.setting, item.value};
    command
        .add_flag_callback(
            item.flag, [&flags, value] { flags.values.push_back(value); }, item.meaning)
        ->group(std::string_view(item.setting).starts_with("data") ? "Data" : "Training");
  }
}

}  // namespace myxtts
