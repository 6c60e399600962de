// The one table of settings. YAML files, flags, `--help`, `config print`, the hash of a corpus index, what must match
// on resume and the reference pages all come from it. A new setting is one row in one .inc file of this folder.
#pragma once

#include "settings/config.h"

#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace myxtts {

enum class PageLanguage { en, fa };

struct Help {
  const char* en = "";
  const char* fa = "";

  const char* in(PageLanguage language) const { return language == PageLanguage::fa ? fa : en; }
};

// The commands that take settings, as bits. `bench` is `bench loader`, `diagnose` its bottleneck and retracing.
enum class Command : unsigned { prepare = 1, batches = 2, bench = 4, diagnose = 8, train = 16, all = 31 };
constexpr Command operator|(Command a, Command b) {
  return static_cast<Command>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

// Where a setting lives inside a Config. MelOverride is a number of the mel preset; the mel code knows its type.
struct MelOverride {
  std::map<std::string, std::string>* overrides;
};
using SettingAddress = std::variant<bool*, int64_t*, double*, std::string*, IntRange*, MelOverride>;

struct Setting {
  std::string section;  // in a file: "data", "model" or "training"
  std::string group;    // in the reference: its .inc file without the section
  std::string key;
  SettingAddress (*address)(Config&);
  Help help;
  std::vector<std::string> flags = {};  // "--batch-size"; of a bool: switches that turn it on
  std::string off_flag = {};            // of a bool: the switch that turns it off
  Help off_help = {};
  std::vector<std::string> old_names = {};  // accepted in files as well
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::string automatic = {};  // the word for "not a number": "auto" or "none"; the number stored is `min` - 1
  std::string off = {};        // the word for "never" of a whole number; the number stored is `min` - 2
  std::vector<std::string> choices = {};        // of a text; empty: any
  bool (*valid)(const std::string&) = nullptr;  // of a text; `choices` are then patterns, such as "cuda:N"
  Command commands = {};                        // those that take its flag, or use it if it has none
  bool in_index = false;                        // changes what the index of a corpus holds
  bool fixed_on_resume = false;                 // must match when a run resumes

  std::string name() const { return section + "." + key; }
  bool is_switch() const;  // a bool
  bool taken_by(Command command) const {
    return (static_cast<unsigned>(commands) & static_cast<unsigned>(command)) != 0;
  }
};

const std::vector<Setting>& all_settings();

// By "section.key", by key alone, or by an old name of either form; null if there is none.
const Setting* find_setting(std::string_view name);

// Every name that `find_setting` knows, without sections.
std::vector<std::string> setting_names();

// The value as a file would write it.
std::string value_text(const Setting& setting, const Config& config);

// What the setting takes, in words: "a whole number from 1 to 65536, or a range such as 8-16".
std::string allowed_text(const Setting& setting);

// Parses `text` into the setting. Throws Error that names key, value, source and what is allowed.
void set_value(ResolvedConfig& config, const Setting& setting, const std::string& text, const Source& source);

// Applies what `training.optimization_level` stands for to the settings that nobody set.
void apply_optimization_level(ResolvedConfig& config);

}  // namespace myxtts
