// YAML into settings. A file has the sections `data:`, `model:` and `training:`, or is flat (a key at the top level
// goes to the section that knows it). `preset: NAME` at the top names a set of values that the file builds on, and
// `mel_presets:` holds mel conventions of the user's own.
#pragma once

#include "settings/config.h"

#include <filesystem>
#include <string>
#include <vector>

namespace myxtts {

// The presets compiled in from `configs/`.
std::vector<std::string> config_preset_names();

// One setting from the command line.
struct FlagValue {
  std::string flag;  // as the user typed it
  std::string name;  // "data.batch_size"
  std::string text;
};

// Default, preset, file, flags: each beats the one before. `file` and `preset` may be empty.
ResolvedConfig load_config(const std::filesystem::path& file, const std::string& preset,
                           const std::vector<FlagValue>& flags);

// A configuration as a file that gives the same one, and back. `origin` is what errors name.
std::string config_to_yaml(const Config& config);
Config config_from_yaml(const std::string& text, const std::string& origin);

}  // namespace myxtts
