#include "settings/reference.h"

#include <cmath>
#include <utility>

namespace myxtts {
namespace {

const std::pair<const char*, Command> commands[] = {{"prepare", Command::prepare},
                                                    {"batches", Command::batches},
                                                    {"bench", Command::bench},
                                                    {"diagnose", Command::diagnose},
                                                    {"train", Command::train}};

// The words of the pages that are not in the rows; {} is a value.
struct Words {
  const char *key, *flag, *initial, *allowed, *help;  // headings
  const char *comma, *semicolon, *or_word;
  const char *at_least, *from_to, *range, *number, *text, *no_value;  // what is allowed
  const char *old_name, *only_file, *default_is, *flag_is;
};

const Words english = {.key = "key",
                       .flag = "flag",
                       .initial = "default",
                       .allowed = "allowed",
                       .help = "meaning",
                       .comma = ", ",
                       .semicolon = ";",
                       .or_word = ", or ",
                       .at_least = "at least {}",
                       .from_to = "{} to {}",
                       .range = ", a range",
                       .number = "a number",
                       .text = "text",
                       .no_value = "no value",
                       .old_name = "old name: {}",
                       .only_file = "From a file only: {}.",
                       .default_is = "; default {}",
                       .flag_is = "; flag {}"};

const Words persian = {.key = "کلید",
                       .flag = "گزینه",
                       .initial = "پیش‌فرض",
                       .allowed = "مجاز",
                       .help = "معنا",
                       .comma = "، ",
                       .semicolon = "؛",
                       .or_word = "، یا ",
                       .at_least = "دست‌کم {}",
                       .from_to = "{} تا {}",
                       .range = "، بازه",
                       .number = "عدد",
                       .text = "متن",
                       .no_value = "بدون مقدار",
                       .old_name = "نام قدیمی: {}",
                       .only_file = "فقط از فایل: {}.",
                       .default_is = "؛ پیش‌فرض {}",
                       .flag_is = "؛ گزینه‌ی {}"};

template <typename... Values>
std::string say(const char* pattern, const Values&... values) {
  return fmt::format(fmt::runtime(pattern), values...);
}

// Typed words: in code quotes on a page, as they are in a terminal.
class Writer {
 public:
  explicit Writer(const ReferenceOptions& options)
      : options_(options), words_(options.language == PageLanguage::fa ? persian : english) {}

  std::string code(const std::string& text) const {
    if (!options_.markdown) return text;
    std::string escaped;
    for (const char c : text) {
      if (c == '|') escaped += '\\';
      escaped += c;
    }
    return fmt::format("`{}`", escaped);
  }

  std::string list(const std::vector<std::string>& items) const {
    std::vector<std::string> quoted;
    for (const std::string& item : items) quoted.push_back(code(item));
    return fmt::format("{}", fmt::join(quoted, words_.comma));
  }

  static std::vector<std::string> flags(const Setting& setting) {
    std::vector<std::string> all = setting.flags;
    if (!setting.off_flag.empty()) all.push_back(setting.off_flag);
    return all;
  }

  std::string allowed(const Setting& setting) const {
    std::string text = kind(setting);
    if (!setting.automatic.empty()) text += words_.or_word + code(setting.automatic);
    if (!setting.off.empty()) text += words_.or_word + code(setting.off);
    return text;
  }

  std::string table() const {
    std::string text = options_.command.empty() ? fmt::format("| {} ", words_.key) : "";
    text += fmt::format("| {} | {} | {} | {} |\n", words_.flag, words_.initial, words_.allowed, words_.help);
    text += options_.command.empty() ? "|---|---|---|---|---|\n" : "|---|---|---|---|\n";
    std::vector<std::string> without_flag;
    for (const Setting* setting : rows()) {
      if (!options_.command.empty() && setting->flags.empty()) {
        without_flag.push_back(setting->key);
      } else {
        text += table_row(*setting);
      }
    }
    if (!without_flag.empty()) text += fmt::format("\n{}\n", say(words_.only_file, list(without_flag)));
    return text;
  }

  std::string plain() const {
    std::string text;
    for (const Setting* setting : rows()) {
      const std::string old =
          setting->old_names.empty() ? "" : fmt::format(" ({})", say(words_.old_name, list(setting->old_names)));
      text += fmt::format("{}{}\n    {}\n    {}{}", setting->name(), old, setting->help.in(options_.language),
                          options_.language == PageLanguage::en ? allowed_text(*setting) : allowed(*setting),
                          say(words_.default_is, value_text(*setting, Config{})));
      if (!setting->flags.empty()) text += say(words_.flag_is, list(flags(*setting)));
      text += "\n";
    }
    return text;
  }

 private:
  std::vector<const Setting*> rows() const {
    std::vector<const Setting*> chosen;
    for (const Setting& setting : all_settings()) {
      bool taken = options_.command.empty();
      for (const auto& [name, command] : commands) taken |= options_.command == name && setting.taken_by(command);
      if (taken && (options_.group.empty() || options_.group == setting.group)) chosen.push_back(&setting);
    }
    return chosen;
  }

  std::string kind(const Setting& setting) const {
    if (setting.is_switch()) return options_.command.empty() ? list({"true", "false"}) : words_.no_value;
    if (!setting.choices.empty()) return list(setting.choices);
    Config any;
    const SettingAddress address = setting.address(any);
    if (std::holds_alternative<std::string*>(address)) return words_.text;
    const auto number = [&](double value) { return code(fmt::format("{}", value)); };
    std::string text = std::isinf(setting.min)   ? std::string(words_.number)
                       : std::isinf(setting.max) ? say(words_.at_least, number(setting.min))
                                                 : say(words_.from_to, number(setting.min), number(setting.max));
    if (std::holds_alternative<IntRange*>(address)) text += words_.range;
    return text;
  }

  std::string table_row(const Setting& setting) const {
    std::string help = setting.help.in(options_.language);
    if (!setting.off_flag.empty()) {
      help +=
          fmt::format("{} {}: {}", words_.semicolon, code(setting.off_flag), setting.off_help.in(options_.language));
    }
    if (!setting.old_names.empty()) {
      help += fmt::format("{} {}", words_.semicolon, say(words_.old_name, list(setting.old_names)));
    }
    const std::string row = fmt::format("| {} | {} | {} | {} |\n", list(flags(setting)),
                                        code(value_text(setting, Config{})), allowed(setting), help);
    return options_.command.empty() ? fmt::format("| {} ", code(setting.key)) + row : row;
  }

  const ReferenceOptions& options_;
  const Words& words_;
};

}  // namespace

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& [name, command] : commands) names.emplace_back(name);
  return names;
}

std::vector<std::string> setting_groups() {
  std::vector<std::string> groups;
  for (const Setting& setting : all_settings()) {
    if (groups.empty() || groups.back() != setting.group) groups.push_back(setting.group);
  }
  return groups;
}

std::string settings_reference(const ReferenceOptions& options) {
  const Writer writer(options);
  return options.markdown ? writer.table() : writer.plain();
}

}  // namespace myxtts
