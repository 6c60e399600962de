#include "settings/settings.h"

#include "base/error.h"
#include "base/files.h"
#include "settings/config_file.h"

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

TEST(ConfigFields, every_name_is_known_once) {
  std::set<std::string> names;
  for (const std::string& name : field_names()) EXPECT_TRUE(names.insert(name).second) << name;
}

TEST(ConfigFields, every_default_is_a_value_that_the_field_takes) {
  for (const Field& field : config_fields()) {
    ResolvedConfig config;
    const std::string text = value_text(field, config.values);
    if (text == "none" && field.automatic.empty()) continue;  // an empty text
    EXPECT_NO_THROW(set_field(config, field, text, {})) << field.name();
    EXPECT_EQ(value_text(field, config.values), text) << field.name();
  }
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
    for (const Field& field : config_fields())
      EXPECT_EQ(value_text(field, after), value_text(field, before)) << field.name();
    EXPECT_EQ(after.data.vocabulary, before.data.vocabulary);
    EXPECT_EQ(after.mel_presets, before.mel_presets);
  }
}

TEST(ConfigPresets, every_shipped_file_loads) {
  for (const std::string& name : config_preset_names()) EXPECT_NO_THROW(load_config({}, name, {})) << name;
}

}  // namespace
}  // namespace myxtts
