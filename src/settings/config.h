// Every setting, as plain structs with their defaults. `settings.h` is the table that names them for files and flags,
// `config_file.h` fills them from YAML. No setting is read from anywhere else.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace myxtts {

// A number, or a range within which automatic tuning picks. {0, 0} leaves the choice to the tuning altogether.
struct IntRange {
  int64_t low = 0;
  int64_t high = 0;

  static IntRange exactly(int64_t value) { return {value, value}; }
  bool automatic() const { return high == 0; }
  bool fixed() const { return low == high && !automatic(); }
  // The allowed value nearest to `wish`.
  int64_t pick(int64_t wish) const { return automatic() ? wish : wish < low ? low : wish > high ? high : wish; }
  bool operator==(const IntRange&) const = default;
};

// A setting is one row of a .inc file: its type, name and default become a member here, the rest a row of the table.
#define SETTING(type, name, initial, ...) type name = initial;
#define MEL_SETTING(name, ...)

struct DataConfig {
#include "settings/data_corpus.inc"
#include "settings/data_loading.inc"
#include "settings/data_mel.inc"
  std::map<std::string, std::string> mel_overrides;  // the MEL_SETTINGs that were set, by name

  bool operator==(const DataConfig&) const = default;
};

struct ModelConfig {
#include "settings/model.inc"

  bool operator==(const ModelConfig&) const = default;
};

struct TrainingConfig {
#include "settings/training.inc"

  bool operator==(const TrainingConfig&) const = default;
};

#undef MEL_SETTING
#undef SETTING

struct Config {
  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  // Mel presets of the user's own: name -> setting -> value, `base` among the settings.
  std::map<std::string, std::map<std::string, std::string>> mel_presets;

  bool operator==(const Config&) const = default;
};

// Where a value came from; a later kind beats an earlier one.
struct Source {
  enum class Kind { by_default, preset, file, flag, auto_tuned };
  Kind kind = Kind::by_default;
  std::string detail;  // preset's name, file:line, flag, reason

  std::string to_string() const;  // "file my.yaml:3"
};

// A configuration that remembers the source of each value, by "section.key". A key without one has its default.
struct ResolvedConfig {
  Config values;
  std::map<std::string, Source> sources;
};

}  // namespace myxtts
