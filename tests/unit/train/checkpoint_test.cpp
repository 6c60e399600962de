#include "train/checkpoint.h"

#include "base/error.h"
#include "base/files.h"
#include "synth/voice_file.h"

#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() {
    layout.add("matrix", {3, 5}, 1);
    layout.add("vector", {7}, 1);
    layout.arrange();
    groups = {{"voice", &layout, {}, 1, {"loss"}}};
    states.push_back(make_optimizer_state(layout.initial(1)));
    states.front().first_moment.fill_(0.25);
    states.front().updates.fill_(12);
    voice.vocabulary = Vocabulary({U'a', U'b', U'ب'});
    voice.config.data.language = "fa";
    voice.config.data.mel_overrides["n_mels"] = "64";
    voice.mel_mean = -5.5;
    header.metadata = voice.to_metadata();
    header.position.step = 12;
    header.position.epoch = 3;
    header.position.batch = 4;
    header.position.validations_without_progress = 2;
    header.position.last_validation = 11;
    header.position.plan = 0xFFFFFFFFFFFFFFF1ULL;
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~Checkpoints() override { fs::remove_all(folder); }

  fs::path folder = fs::path(testing::TempDir()) / "checkpoints";
  ParameterLayout layout;
  std::vector<ParameterGroup> groups;
  std::vector<OptimizerState> states;
  VoiceDescription voice;
  CheckpointHeader header;
};

TEST_F(Checkpoints, come_back_as_they_were) {
  save_checkpoint(folder / "a.safetensors", header, groups, states);
  const CheckpointHeader read = read_checkpoint_header(folder / "a.safetensors");
  EXPECT_EQ(read.position.step, 12);
  EXPECT_EQ(read.position.plan, header.position.plan);
  EXPECT_EQ(read.position.validations_without_progress, 2);
  EXPECT_EQ(read.position.last_validation, 11);
  EXPECT_TRUE(std::isinf(read.position.best_validation));
  const VoiceDescription described = VoiceDescription::from_metadata(read.metadata, "a.safetensors");
  EXPECT_EQ(described.config.data.language, "fa");
  EXPECT_EQ(described.spec().n_mels, 64);
  EXPECT_EQ(described.vocabulary.to_json(), voice.vocabulary.to_json());
  EXPECT_EQ(described.mel_mean, -5.5);
  std::vector<OptimizerState> loaded = {make_optimizer_state(at::zeros({layout.elements()}))};
  load_checkpoint(folder / "a.safetensors", groups, loaded);
  EXPECT_TRUE(loaded.front().master.equal(states.front().master));
  EXPECT_EQ(loaded.front().updates.item<float>(), 12);
  // Gaps between parameters are nobody's: everything else is the same.
  EXPECT_TRUE(layout.views(loaded.front().first_moment)[1].equal(layout.views(states.front().first_moment)[1]));
}

TEST_F(Checkpoints, the_newest_whole_one_is_found_and_few_are_kept) {
  {
    CheckpointFolder checkpoints(folder, 2);
    for (int64_t step = 1; step <= 4; ++step) {
      header.position.step = step;
      checkpoints.save_in_background(header, groups, states, step == 1);
    }
    checkpoints.wait();
    EXPECT_FALSE(checkpoints.take_error());
  }
  EXPECT_FALSE(fs::exists(folder / "step-00000001.safetensors"));
  EXPECT_EQ(read_checkpoint_header(folder / "best.safetensors").position.step, 1);
  // A damaged one is named and skipped.
  std::fstream damaged(folder / "step-00000004.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(-3, std::ios::end);
  damaged.put(99);
  damaged.close();
  std::string said;
  EXPECT_EQ(newest_checkpoint(folder, [&](const std::string& text) { said += text; }),
            folder / "step-00000003.safetensors");
  EXPECT_NE(said.find("step-00000004"), std::string::npos);
}

TEST_F(Checkpoints, a_write_that_fails_is_told_and_the_old_one_stays) {
  CheckpointFolder checkpoints(folder / "run", 2);
  checkpoints.save_in_background(header, groups, states, false);
  checkpoints.wait();
  fs::remove_all(folder / "run");  // as a disk that went away
  header.position.step = 13;
  checkpoints.save_in_background(header, groups, states, false);
  checkpoints.wait();
  const auto error = checkpoints.take_error();
  ASSERT_TRUE(error);
  EXPECT_NE(error->find("step 13"), std::string::npos);
  EXPECT_FALSE(checkpoints.take_error());
}

TEST_F(Checkpoints, of_another_voice_are_refused_with_the_difference) {
  const auto difference = [&](const VoiceDescription& wanted) -> std::string {
    try {
      check_same_voice("a.safetensors", voice, wanted);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(difference(voice), "");
  VoiceDescription other = voice;
  other.config.model.size = "big";
  EXPECT_NE(difference(other).find("model.size tiny, this run big"), std::string::npos);
  other = voice;
  other.vocabulary = Vocabulary({U'a', U'b', U'c'});
  EXPECT_NE(difference(other).find("U+0063"), std::string::npos);
  EXPECT_NE(difference(other).find("U+0628"), std::string::npos);
  other = voice;
  other.config.data.mel_preset = "vocos";
  EXPECT_NE(difference(other).find("vocos"), std::string::npos);
  other = voice;
  other.config.data.mel_overrides["magnitude_epsilon"] = "0.5";  // not in the short form of a mel
  EXPECT_NE(difference(other).find("magnitude_epsilon"), std::string::npos);
  other = voice;
  other.config.data.language = "xx";
  EXPECT_NE(difference(other).find("data.language"), std::string::npos);
  other = voice;
  other.config.data.batch_size = {3, 3};
  EXPECT_EQ(difference(other), "");
}

TEST_F(Checkpoints, an_earlier_run_is_put_aside_not_deleted) {
  fs::create_directories(folder / "run");
  write_file_atomically(folder / "run" / "metrics.jsonl", "old");
  EXPECT_EQ(CheckpointFolder::set_aside(folder / "run"), folder / "run.before-1");
  EXPECT_TRUE(fs::exists(folder / "run.before-1" / "metrics.jsonl"));
  EXPECT_FALSE(CheckpointFolder::set_aside(folder / "run"));
  EXPECT_THROW(CheckpointFolder::set_aside(folder), Error);  // no run: nobody's to move
}

}  // namespace
}  // namespace myxtts
