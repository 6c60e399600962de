#include "settings/settings.h"

#include "base/error.h"
#include "base/files.h"
#include "settings/config_file.h"
#include "settings/reference.h"

#include <set>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class ConfigFile : public testing::Test {
 protected:
  fs::path file = fs::path(testing::TempDir()) / "myxtts_config_test.yaml";
  void TearDown() override { fs::remove(file); }

  ResolvedConfig load(const std::string& yaml, const std::vector<FlagValue>& flags = {},
                      const std::string& preset = {}) {
    write_file_atomically(file, yaml);
    return load_config(file, preset, flags);
  }
  std::string error_of(const std::string& yaml) {
    try {
      load(yaml);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_status(), 2);
      return error.what();
    }
    return "no error";
  }
};

// 20 presets that are one map of 20,000 keys: 200 KB that would become 400,000 settings.
TEST_F(ConfigFile, aliases_of_presets_are_not_expanded_without_limit) {
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += fmt::format("{}k{}: 1", i == 0 ? "" : ", ", i);
  std::string yaml = "mel_presets:\n  p: &p {" + keys + "}\n";
  for (int i = 0; i < 20; ++i) yaml += fmt::format("  p{}: *p\n", i);
  EXPECT_NE(error_of(yaml).find("has 20000 settings"), std::string::npos) << error_of(yaml);
  yaml = "mel_presets:\n  p: &p {n_mels: 80}\n";
  for (int i = 0; i < 100; ++i) yaml += fmt::format("  p{}: *p\n", i);
  EXPECT_NE(error_of(yaml).find("there are 101 mel presets"), std::string::npos) << error_of(yaml);
  yaml = "mel_presets: {p: {n_mels: " + std::string(1000, '8') + "}}\n";
  EXPECT_NE(error_of(yaml).find("more than 256 bytes"), std::string::npos) << error_of(yaml);
  yaml = "mel_presets: &m {p: {n_mels: 80}}\nmel_presets: *m\n";
  EXPECT_NE(error_of(yaml), "no error");
  EXPECT_THROW(config_from_yaml(std::string(2 << 20, '#'), "a checkpoint"), Error);
}

// What is wrong with a table of settings, a sentence for each fault.
std::vector<std::string> faults_of(const std::vector<Setting>& rows) {
  std::vector<std::string> faults;
  std::set<std::string> names, flags;
  for (const Setting& row : rows) {
    const auto check = [&](bool good, const std::string& fault) {
      if (!good) faults.push_back(row.name() + ": " + fault);
    };
    const auto in_both_languages = [](const Help& help) { return *help.en != 0 && *help.fa != 0; };
    check(names.insert(row.key).second, "duplicate name");
    for (const std::string& old : row.old_names) check(names.insert(old).second, "duplicate name " + old);
    for (const std::string& flag : row.flags) check(flags.insert(flag).second, "duplicate flag " + flag);
    if (!row.off_flag.empty()) check(flags.insert(row.off_flag).second, "duplicate flag " + row.off_flag);
    check(in_both_languages(row.help), "no help");
    check(!std::string(row.help.en).ends_with('.') && !std::string(row.help.fa).ends_with('.'),
          "help ends with a period");
    check(row.off_flag.empty() || (row.is_switch() && !row.flags.empty()), "an off flag needs a bool with a flag");
    check(row.off_flag.empty() == !in_both_languages(row.off_help), "an off flag and its help belong together");
    check(row.commands != Command{}, "no command takes it");
    check(row.valid == nullptr || !row.choices.empty(), "a check needs patterns to show");
    const std::string initial = value_text(row, Config{});
    if (row.is_switch() && initial == "true" && !row.flags.empty())
      check(!row.off_flag.empty(), "cannot be turned off");
    if (initial == "none" && row.automatic.empty()) continue;  // an empty text
    try {
      ResolvedConfig config;
      set_value(config, row, initial, {});
      check(value_text(row, config.values) == initial, "its default reads as another value");
    } catch (const Error&) {
      check(false, "its default is not allowed");
    }
  }
  return faults;
}

TEST(Settings, no_row_is_broken) { EXPECT_EQ(faults_of(all_settings()), std::vector<std::string>{}); }

TEST(Settings, a_whole_number_may_have_a_word_for_never) {
  const Setting& setting = *find_setting("training.early_stopping");
  ResolvedConfig config;
  for (const std::string text : {"auto", "none", "3"}) {
    set_value(config, setting, text, {});
    EXPECT_EQ(value_text(setting, config.values), text);
  }
  EXPECT_THROW(set_value(config, setting, "-1", {}), Error);
  EXPECT_EQ(allowed_text(setting), "a whole number of at least 1, auto or none");
}

TEST(Settings, a_broken_row_is_found) {
  const auto fault = [](std::string_view name, void (*break_row)(Setting&)) {
    std::vector<Setting> rows = all_settings();
    for (Setting& row : rows) {
      if (row.name() == name) break_row(row);
    }
    const std::vector<std::string> faults = faults_of(rows);
    return faults.size() == 1 ? faults.front() : fmt::format("{} faults", faults.size());
  };
  EXPECT_EQ(fault("data.val_share", [](Setting& row) { row.key = "batch_size"; }), "data.batch_size: duplicate name");
  EXPECT_EQ(fault("data.val_share",
                  [](Setting& row) {
                    row.flags = {"--config-x", "--lr"};
                  }),
            "training.learning_rate: duplicate flag --lr");
  EXPECT_EQ(fault("data.seed", [](Setting&) {}), "0 faults");
  EXPECT_EQ(fault("training.seed", [](Setting& row) { row.help.fa = ""; }), "training.seed: no help");
  EXPECT_EQ(fault("training.seed", [](Setting& row) { row.min = 2; }), "training.seed: its default is not allowed");
  EXPECT_EQ(fault("model.size", [](Setting& row) { row.choices = {"big"}; }), "model.size: its default is not allowed");
  EXPECT_EQ(fault("training.seed", [](Setting& row) { row.commands = {}; }), "training.seed: no command takes it");
  EXPECT_EQ(fault("data.prefetch_to_gpu", [](Setting& row) { row.off_flag.clear(), row.off_help = {}; }),
            "data.prefetch_to_gpu: cannot be turned off");
  EXPECT_EQ(fault("data.prefetch_to_gpu", [](Setting& row) { row.off_help.fa = ""; }),
            "data.prefetch_to_gpu: an off flag and its help belong together");
  EXPECT_EQ(fault("training.seed",
                  [](Setting& row) {
                    row.off_flag = "--no-seed", row.off_help = {"a", "b"};
                  }),
            "training.seed: an off flag needs a bool with a flag");
}

TEST(Settings, each_command_takes_what_it_uses) {
  const auto taken = [](std::string_view name, Command command) { return find_setting(name)->taken_by(command); };
  EXPECT_TRUE(taken("batch_size", Command::prepare));
  EXPECT_FALSE(taken("seed", Command::prepare));
  EXPECT_TRUE(taken("seed", Command::batches));
  EXPECT_TRUE(taken("size", Command::diagnose));
  EXPECT_FALSE(taken("size", Command::bench));
  for (const Setting& setting : all_settings()) EXPECT_TRUE(setting.taken_by(Command::train)) << setting.name();
}

TEST(SettingsReference, has_every_setting_in_both_languages) {
  for (const bool markdown : {false, true}) {
    const std::string en = settings_reference({PageLanguage::en, markdown});
    const std::string fa = settings_reference({PageLanguage::fa, markdown});
    for (const Setting& setting : all_settings()) {
      EXPECT_NE(en.find(setting.help.en), std::string::npos) << setting.name();
      EXPECT_NE(fa.find(setting.help.fa), std::string::npos) << setting.name();
      for (const std::string& flag : setting.flags) EXPECT_NE(fa.find(flag), std::string::npos) << flag;
    }
  }
}

TEST(SettingsReference, escapes_the_bars_of_a_value_in_a_table) {
  const std::string table = settings_reference({PageLanguage::en, true, "prepare", "corpus"});
  EXPECT_NE(table.find("| `--metadata-format` | `id\\|text\\|normalised` |"), std::string::npos);
  EXPECT_NE(table.find("From a file only: `allow_outside`, `val_share`, "), std::string::npos);
  EXPECT_EQ(table.find("--train-data"), std::string::npos);
}

TEST_F(ConfigFile, a_flag_beats_the_file_beats_the_preset_beats_the_default) {
  const ResolvedConfig config =
      load("preset: rtx3060\ndata:\n  num_workers: 3\n  batch_size: 5\n", {{"--batch-size", "data.batch_size", "6"}});
  EXPECT_EQ(config.values.data.batch_size.low, 6);
  EXPECT_EQ(config.sources.at("data.batch_size").to_string(), "flag --batch-size");
  EXPECT_EQ(config.values.data.num_workers.low, 3);
  EXPECT_EQ(config.sources.at("data.num_workers").to_string(), "file " + file.string() + ":3");
  EXPECT_EQ(config.values.training.gradient_accumulation_steps, 2);
  EXPECT_EQ(config.sources.at("training.gradient_accumulation_steps").to_string(), "preset rtx3060");
  EXPECT_FALSE(config.sources.contains("data.model_start_delay"));
}

TEST_F(ConfigFile, old_names_flat_keys_and_ranges_work) {
  const ResolvedConfig config =
      load("use_tf_native_loading: false\nenable_xla_compilation: false\nnum_workers: 8-16\nbatch_size: 16-32\n");
  EXPECT_FALSE(config.values.data.use_native_loading);
  EXPECT_FALSE(config.values.training.enable_fused_kernels);
  EXPECT_EQ(config.values.data.num_workers, (IntRange{8, 16}));
  EXPECT_EQ(config.values.data.num_workers.pick(4), 8);
  EXPECT_EQ(config.values.data.num_workers.pick(99), 16);
  EXPECT_EQ(config.values.data.batch_size, (IntRange{16, 32}));
}

TEST_F(ConfigFile, the_basic_level_switches_capture_off_unless_it_was_set) {
  EXPECT_FALSE(load("optimization_level: basic\n").values.training.enable_graph_mode);
  EXPECT_TRUE(load("optimization_level: basic\nenable_graph_mode: true\n").values.training.enable_graph_mode);
}

TEST_F(ConfigFile, a_wrong_file_says_what_where_and_what_would_be_right) {
  EXPECT_NE(error_of("data:\n  bacth_size: 3\n").find(":2); did you mean data.batch_size?"), std::string::npos);
  EXPECT_NE(error_of("training:\n  batch_size: 3\n").find("did you mean data.batch_size?"), std::string::npos);
  EXPECT_NE(error_of("batch_size: -4\n").find("data.batch_size is '-4'"), std::string::npos);
  EXPECT_NE(error_of("batch_size: many\n").find("it must be a whole number or a range"), std::string::npos);
  EXPECT_NE(error_of("batch_size: 32-16\n").find("'32-16'"), std::string::npos);
  EXPECT_NE(error_of("batch_size: [1, 2]\n").find("no single value"), std::string::npos);
  EXPECT_NE(error_of("batch_size: 8\ndata:\n  batch_size: 9\n").find("a second time"), std::string::npos);
  EXPECT_NE(error_of("prefetch_to_gpu: 7\n").find("true or false"), std::string::npos);
  EXPECT_NE(error_of("data: 5\n").find("not a section"), std::string::npos);
  EXPECT_NE(error_of("").find("holds no settings"), std::string::npos);
  EXPECT_NE(error_of("a: [\n").find("is not YAML"), std::string::npos);
  EXPECT_NE(error_of("preset: rtx9999\n").find("there are config"), std::string::npos);
  EXPECT_NE(error_of("model_start_delay: .nan\n").find("it must be a number"), std::string::npos);
}

TEST(ConfigYaml, gives_back_every_setting_as_it_was) {
  ResolvedConfig config = load_config({}, "h200", {});
  config.values.data.train_data = "a: b # \"c\"";
  config.values.data.mel_overrides["n_mels"] = "64";
  config.values.mel_presets["mine"]["base"] = "vocos";
  for (const Config& before : {Config{}, config.values}) {
    const Config after = config_from_yaml(config_to_yaml(before), "test");
    for (const Setting& setting : all_settings())
      EXPECT_EQ(value_text(setting, after), value_text(setting, before)) << setting.name();
    EXPECT_TRUE(after == before);
  }
}

TEST(ConfigPresets, every_shipped_file_loads) {
  for (const std::string& name : config_preset_names()) EXPECT_NO_THROW(load_config({}, name, {})) << name;
}

}  // namespace
}  // namespace myxtts
