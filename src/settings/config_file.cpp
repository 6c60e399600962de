#include "settings/config_file.h"

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "settings/config_presets.h"
#include "settings/settings.h"

#include <set>

#include <yaml-cpp/yaml.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t max_config_bytes = 1 << 20;

// Reads one YAML text into a configuration; every error says file and line.
class YamlReader {
 public:
  YamlReader(ResolvedConfig& config, std::string origin, Source::Kind kind)
      : config_(config), origin_(std::move(origin)), kind_(kind) {}

  void read(const YAML::Node& root) {
    if (!root.IsMap())
      reject_input("config", "{} holds no settings", origin_, way_out("write keys such as 'batch_size: 16'"));
    for (const auto& entry : root) {
      const std::string name = key_of(entry.first);
      if (name == "preset") continue;
      if (name == "mel_presets") {
        read_mel_presets(entry.second);
      } else if (name == "data" || name == "model" || name == "training") {
        read_section(name, entry.second);
      } else {
        read_value(name, name, entry.first, entry.second);
      }
    }
  }

 private:
  std::string where(const YAML::Node& node) const { return fmt::format("{}:{}", origin_, node.Mark().line + 1); }

  std::string key_of(const YAML::Node& node) const {
    if (!node.IsScalar()) reject_input("config", "a key is not a plain word ({})", where(node));
    return node.Scalar();
  }

  void read_section(const std::string& section, const YAML::Node& values) {
    if (values.IsNull()) return;
    if (!values.IsMap()) {
      reject_input("config", "{} is not a section of keys ({})", section, where(values),
                   way_out("indent its keys below it"));
    }
    for (const auto& entry : values) {
      const std::string key = key_of(entry.first);
      read_value(key, section + "." + key, entry.first, entry.second);
    }
  }

  void read_value(const std::string& key, const std::string& name, const YAML::Node& key_node,
                  const YAML::Node& value) {
    const Setting* setting = find_setting(name);
    if (setting == nullptr) unknown_key(key, name, key_node);
    const Source source{kind_, kind_ == Source::Kind::file ? where(key_node) : origin_};
    if (!value.IsScalar()) {
      reject_setting("config", setting->name(), "has no single value ({})", where(key_node),
                     way_out("it must be {}", allowed_text(*setting)));
    }
    if (!seen_.insert(setting->name()).second) {
      reject_setting("config", setting->name(), "is set a second time ({})", where(key_node),
                     way_out("keep one of the two"));
    }
    set_value(config_, *setting, value.Scalar(), source);
  }

  [[noreturn]] void unknown_key(const std::string& key, const std::string& name, const YAML::Node& node) const {
    const Setting* elsewhere = find_setting(key);
    const Setting* near = elsewhere != nullptr ? elsewhere : find_setting(nearest(key, setting_names()));
    reject_setting("config", name, "is not a setting ({})", where(node), way_out("did you mean {}?", near->name()));
  }

  // An alias lets a few bytes stand for many, so sizes are checked before anything is copied.
  void read_mel_presets(const YAML::Node& presets) {
    constexpr size_t max_presets = 64, max_keys = 32, max_value_bytes = 256;
    if (!presets.IsMap()) reject_input("config", "mel_presets is not a section of presets ({})", where(presets));
    if (!seen_.insert("mel_presets").second) {
      reject_input("config", "mel_presets is there a second time ({})", where(presets), way_out("keep one of the two"));
    }
    if (presets.size() > max_presets) {
      reject_input("config", "there are {} mel presets; at most {} are read ({})", presets.size(), max_presets,
                   where(presets));
    }
    for (const auto& preset : presets) {
      const std::string name = key_of(preset.first);
      if (!preset.second.IsMap()) {
        reject_input("config", "mel preset {} has no settings ({})", name, where(preset.first));
      }
      if (preset.second.size() > max_keys) {
        reject_input("config", "mel preset {} has {} settings; at most {} are read ({})", name, preset.second.size(),
                     max_keys, where(preset.first));
      }
      for (const auto& entry : preset.second) {
        const std::string key = key_of(entry.first);
        if (!entry.second.IsScalar())
          reject_input("config", "{}.{} has no single value ({})", name, key, where(entry.first));
        if (name.size() + key.size() + entry.second.Scalar().size() > max_value_bytes) {
          reject_input("config", "a setting of a mel preset has more than {} bytes ({})", max_value_bytes,
                       where(preset.first));
        }
        config_.values.mel_presets[name][key] = entry.second.Scalar();
      }
    }
  }

  ResolvedConfig& config_;
  std::string origin_;
  Source::Kind kind_;
  std::set<std::string> seen_;
};

YAML::Node parse_yaml(const std::string& text, const std::string& origin) {
  if (text.size() > max_config_bytes) {
    reject_input("config", "{} has {} bytes of settings; at most {} are read", origin, text.size(), max_config_bytes);
  }
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    reject_input("config", "{}:{} is not YAML: {}", origin, error.mark.line + 1, error.msg);
  }
}

void apply_preset(ResolvedConfig& config, const std::string& name) {
  for (const ConfigPreset& preset : config_presets()) {
    if (name == preset.name) {
      YamlReader(config, name, Source::Kind::preset).read(parse_yaml(preset.yaml, name));
      return;
    }
  }
  reject_input("config", "there is no preset '{}'", name,
               way_out("there are {}", fmt::join(config_preset_names(), ", ")));
}

}  // namespace

std::vector<std::string> config_preset_names() {
  std::vector<std::string> names;
  for (const ConfigPreset& preset : config_presets()) names.emplace_back(preset.name);
  return names;
}

ResolvedConfig load_config(const fs::path& file, const std::string& preset, const std::vector<FlagValue>& flags) {
  ResolvedConfig config;
  YAML::Node root;
  std::string preset_name = preset;
  if (!file.empty()) {
    root = parse_yaml(read_text_file(file, max_config_bytes), file.string());
    if (root.IsMap() && root["preset"] && preset.empty()) {
      if (!root["preset"].IsScalar()) reject_input("config", "preset in {} is not a name", file.string());
      preset_name = root["preset"].Scalar();
    }
  }
  if (!preset_name.empty()) apply_preset(config, preset_name);
  if (!file.empty()) YamlReader(config, file.string(), Source::Kind::file).read(root);
  for (const FlagValue& flag : flags) {
    set_value(config, *find_setting(flag.name), flag.text, {Source::Kind::flag, flag.flag});
  }
  apply_optimization_level(config);
  return config;
}

std::string config_to_yaml(const Config& config) {
  YAML::Emitter yaml;
  yaml << YAML::BeginMap;
  std::string section;
  for (const Setting& setting : all_settings()) {
    if (setting.section != section) {
      if (!section.empty()) yaml << YAML::EndMap;
      yaml << YAML::Key << (section = setting.section) << YAML::Value << YAML::BeginMap;
    }
    Config copy = config;
    const SettingAddress address = setting.address(copy);
    const auto* text = std::get_if<std::string*>(&address);  // shown as `none` when it is empty
    yaml << YAML::Key << setting.key << YAML::Value << (text != nullptr ? **text : value_text(setting, config));
  }
  yaml << YAML::EndMap;
  if (!config.mel_presets.empty()) yaml << YAML::Key << "mel_presets" << YAML::Value << config.mel_presets;
  yaml << YAML::EndMap;
  return std::string(yaml.c_str()) + "\n";
}

Config config_from_yaml(const std::string& text, const std::string& origin) {
  ResolvedConfig config;
  YamlReader(config, origin, Source::Kind::file).read(parse_yaml(text, origin));
  return config.values;
}

}  // namespace myxtts
