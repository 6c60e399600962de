// The one table of settings: name, old names, type, allowed values and meaning. YAML files, command-line flags,
// `config print` and the documentation are all driven by it.
#pragma once

#include "settings/config.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace myxtts {

// Where a field lives inside a Config. MelOverride is a preset's number; the mel code knows its type.
struct MelOverride {
  std::map<std::string, std::string>* overrides;
};
using FieldAddress = std::variant<bool*, int64_t*, double*, std::string*, IntRange*, MelOverride>;

struct Field {
  std::string section;
  std::string key;
  FieldAddress (*address)(Config&);
  std::string meaning;
  std::string flag = {};                    // "--batch-size", or empty
  std::vector<std::string> old_names = {};  // accepted in files as well
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::string automatic = {};  // the word for "not a number": "auto" or "none"; the number stored is `least` - 1
  std::vector<std::string> choices = {};  // for texts; empty: any

  bool (*valid)(const std::string&) = nullptr;  // for texts of a form of their own; `meaning` names it

  std::string name() const { return section + "." + key; }
};

const std::vector<Field>& config_fields();

// By "section.key", by key alone, or by an old name of either form; null when there is none.
const Field* find_field(std::string_view name);

// Every name that `find_field` knows, without sections.
std::vector<std::string> field_names();

// The value as a file would write it.
std::string value_text(const Field& field, const Config& config);

// What the field takes, in words: "a whole number from 1 to 65536, or a range such as 8-16".
std::string allowed_text(const Field& field);

// Parses `text` into the field. Throws Error that names key, value, source and what is allowed.
void set_field(ResolvedConfig& config, const Field& field, const std::string& text, const Source& source);

// Applies what `training.optimization_level` stands for to the settings that nobody set.
void apply_optimization_level(ResolvedConfig& config);

}  // namespace myxtts
