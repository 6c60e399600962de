#include "settings/settings.h"

#include "base/error.h"

#include <charconv>
#include <cmath>

namespace myxtts {
namespace {

bool parse_bool(std::string text, bool& value) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text == "true" || text == "yes" || text == "on") return value = true, true;
  if (text == "false" || text == "no" || text == "off") return value = false, true;
  return false;
}

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool in_limits(const Setting& setting, double value) { return value >= setting.min && value <= setting.max; }

bool parse_range(const Setting& setting, std::string_view text, IntRange& value) {
  const size_t dash = text.find('-', 1);
  IntRange range;
  if (!parse_number(text.substr(0, dash), range.low)) return false;
  range.high = range.low;
  if (dash != std::string_view::npos && !parse_number(text.substr(dash + 1), range.high)) return false;
  if (!in_limits(setting, range.low) || !in_limits(setting, range.high) || range.low > range.high) return false;
  value = range;
  return true;
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// The number that stands for the word for automatic.
int64_t automatic_number(const Setting& setting) { return static_cast<int64_t>(setting.min) - 1; }
int64_t off_number(const Setting& setting) { return static_cast<int64_t>(setting.min) - 2; }
double automatic_fraction(const Setting& setting) { return setting.min > 0 ? 0.0 : setting.min - 1; }

// Writes the value and returns true, or returns false and leaves it.
bool store(const Setting& setting, Config& config, const std::string& text) {
  const bool automatic = !setting.automatic.empty() && text == setting.automatic;
  return std::visit(
      Overloaded{[&](bool* value) { return parse_bool(text, *value); },
                 [&](int64_t* value) {
                   if (automatic) return *value = automatic_number(setting), true;
                   if (!setting.off.empty() && text == setting.off) return *value = off_number(setting), true;
                   int64_t number = 0;
                   if (!parse_number(text, number) || !in_limits(setting, static_cast<double>(number))) return false;
                   return *value = number, true;
                 },
                 [&](double* value) {
                   if (automatic) return *value = automatic_fraction(setting), true;
                   double number = 0;
                   if (!parse_number(text, number) || !std::isfinite(number) || !in_limits(setting, number))
                     return false;
                   return *value = number, true;
                 },
                 [&](std::string* value) {
                   const auto& choices = setting.choices;
                   const bool known =
                       setting.valid != nullptr
                           ? setting.valid(text)
                           : choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end();
                   if (known) *value = text;
                   return known;
                 },
                 [&](IntRange* value) {
                   if (automatic) return *value = IntRange{}, true;
                   return parse_range(setting, text, *value);
                 },
                 [&](MelOverride mel) {
                   if (text.empty()) return false;
                   if (automatic) {
                     mel.overrides->erase(setting.key);
                   } else {
                     (*mel.overrides)[setting.key] = text;
                   }
                   return true;
                 }},
      setting.address(config));
}

}  // namespace

bool Setting::is_switch() const {
  Config any;
  return std::holds_alternative<bool*>(address(any));
}

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : all_settings()) {
    if (name == setting.key || name == setting.name()) return &setting;
    for (const std::string& old : setting.old_names) {
      if (name == old || name == setting.section + "." + old) return &setting;
    }
  }
  return nullptr;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Setting& setting : all_settings()) {
    names.push_back(setting.key);
    names.insert(names.end(), setting.old_names.begin(), setting.old_names.end());
  }
  return names;
}

std::string value_text(const Setting& setting, const Config& config) {
  Config copy = config;
  return std::visit(
      Overloaded{[](const bool* value) { return std::string(*value ? "true" : "false"); },
                 [&](const int64_t* value) {
                   if (!setting.off.empty() && *value == off_number(setting)) return setting.off;
                   const bool automatic = !setting.automatic.empty() && *value == automatic_number(setting);
                   return automatic ? setting.automatic : fmt::format("{}", *value);
                 },
                 [&](const double* value) {
                   const bool automatic = !setting.automatic.empty() && *value == automatic_fraction(setting);
                   return automatic ? setting.automatic : fmt::format("{}", *value);
                 },
                 [](const std::string* value) { return value->empty() ? std::string("none") : *value; },
                 [&](const IntRange* value) {
                   if (value->automatic()) return setting.automatic;
                   return value->fixed() ? fmt::format("{}", value->low)
                                         : fmt::format("{}-{}", value->low, value->high);
                 },
                 [&](const MelOverride mel) {
                   const auto found = mel.overrides->find(setting.key);
                   return found == mel.overrides->end() ? setting.automatic : found->second;
                 }},
      setting.address(copy));
}

std::string allowed_text(const Setting& setting) {
  const auto limits = [&](const char* noun) {
    const std::string kind = std::isinf(setting.min) ? std::string(noun)
                             : std::isinf(setting.max)
                                 ? fmt::format("{} of at least {}", noun, setting.min)
                                 : fmt::format("{} from {} to {}", noun, setting.min, setting.max);
    if (!setting.off.empty()) return fmt::format("{}, {} or {}", kind, setting.automatic, setting.off);
    return setting.automatic.empty() ? kind : fmt::format("{}, or {}", kind, setting.automatic);
  };
  Config any;
  return std::visit(
      Overloaded{[](const bool*) { return std::string("true or false"); },
                 [&](const int64_t*) { return limits("a whole number"); },
                 [&](const double*) { return limits("a number"); },
                 [&](const std::string*) {
                   if (setting.valid != nullptr) {
                     const auto last = setting.choices.end() - 1;
                     return fmt::format("{} or {}", fmt::join(setting.choices.begin(), last, ", "), *last);
                   }
                   return setting.choices.empty() ? std::string("a text")
                                                  : fmt::format("one of {}", fmt::join(setting.choices, ", "));
                 },
                 [&](const IntRange*) { return limits("a whole number or a range such as 8-16,"); },
                 [&](const MelOverride) {
                   return setting.choices.empty()
                              ? limits("a number")
                              : fmt::format("one of {}, or {}", fmt::join(setting.choices, ", "), setting.automatic);
                 }},
      setting.address(any));
}

void set_value(ResolvedConfig& config, const Setting& setting, const std::string& text, const Source& source) {
  if (!store(setting, config.values, text)) {
    reject_setting("config", setting.name(), "is '{}' ({})", text, source.to_string(),
                   way_out("it must be {}", allowed_text(setting)));
  }
  config.sources[setting.name()] = source;
}

void apply_optimization_level(ResolvedConfig& config) {
  if (config.values.training.optimization_level != "basic") return;
  for (const char* key : {"training.enable_graph_mode", "training.enable_fused_kernels"}) {
    if (!config.sources.contains(key)) {
      set_value(config, *find_setting(key), "false", {Source::Kind::preset, "optimization level basic"});
    }
  }
}

}  // namespace myxtts
