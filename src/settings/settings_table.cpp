// The rows of the .inc files as one table.
#include "settings/settings.h"

namespace myxtts {
namespace {

constexpr Command model_commands = Command::diagnose | Command::train;
constexpr Command loading_commands = Command::batches | Command::bench | model_commands;

bool is_device(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  return text.starts_with("cuda:") && text.size() > 5 && text.size() < 9 &&
         text.find_first_not_of("0123456789", 5) == std::string::npos;
}

SettingAddress mel_override(Config& config) { return MelOverride{&config.data.mel_overrides}; }

Setting mel_setting(Setting row) {
  row.automatic = "preset";
  row.commands = Command::all;
  return row;
}

// SECTION is the member of Config that the rows belong to; `section` and `group` name where they stand.
#define SETTING(type, name, initial, ...)                                                 \
  rows.push_back({.section = section,                                                     \
                  .group = group,                                                         \
                  .key = #name,                                                           \
                  .address = [](Config& c) -> SettingAddress { return &c.SECTION.name; }, \
                  __VA_ARGS__});
#define MEL_SETTING(name, ...) \
  rows.push_back(mel_setting({.section = section, .group = group, .key = #name, .address = mel_override, __VA_ARGS__}));

void add_data(std::vector<Setting>& rows) {
#define SECTION data
  const char* const section = "data";
  const char* group = "corpus";
#include "settings/data_corpus.inc"
  group = "loading";
#include "settings/data_loading.inc"
  group = "mel";
#include "settings/data_mel.inc"
#undef SECTION
}

void add_model(std::vector<Setting>& rows) {
#define SECTION model
  const char *const section = "model", *const group = "model";
#include "settings/model.inc"
#undef SECTION
}

void add_training(std::vector<Setting>& rows) {
#define SECTION training
  const char *const section = "training", *const group = "training";
#include "settings/training.inc"
#undef SECTION
}

#undef MEL_SETTING
#undef SETTING

std::vector<Setting> make_settings() {
  std::vector<Setting> rows;
  add_data(rows), add_model(rows), add_training(rows);
  return rows;
}

}  // namespace

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> settings = make_settings();
  return settings;
}

}  // namespace myxtts
