#include "train/checkpoint.h"

#include "artifacts/safetensors.h"
#include "base/error.h"
#include "base/files.h"
#include "synth/voice_file.h"
#include "tools/faults.h"

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

// Every call on the file, one after the other, fails once.
TEST_F(Checkpoints, of_before_are_whole_wherever_a_write_fails) {
  save_checkpoint(folder / "a.safetensors", header, groups, states);
  const std::string before = read_text_file(folder / "a.safetensors", 1 << 20);
  faults_arm("a.safetensors", FAULT_NONE, 0, 0, nullptr);
  save_checkpoint(folder / "a.safetensors", header, groups, states);
  const int calls = faults_seen();
  ASSERT_GT(calls, 4);
  header.position.step = 13;
  for (const fault_kind kind : {FAULT_EIO, FAULT_ENOSPC, FAULT_EINTR}) {
    int failed = 0;
    for (int call = 1; call <= calls; ++call) {
      write_file_atomically(folder / "a.safetensors", before);
      faults_arm("a.safetensors", kind, call, 1, nullptr);
      bool written = true;
      try {
        save_checkpoint(folder / "a.safetensors", header, groups, states);
      } catch (const Error& error) {
        written = false;
        EXPECT_NE(std::string(error.what()).find("a.safetensors"), std::string::npos) << error.what();
      }
      EXPECT_EQ(faults_raised(), 1) << "call " << call;
      faults_disarm();
      failed += written ? 0 : 1;
      SafetensorsFile(folder / "a.safetensors").verify();
      EXPECT_EQ(read_checkpoint_header(folder / "a.safetensors").position.step, written ? 13 : 12) << "call " << call;
      EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "call " << call << " left something behind";
    }
    EXPECT_EQ(failed > 0, kind != FAULT_EINTR);
  }
}

TEST_F(Checkpoints, in_the_background_are_whole_wherever_a_call_fails) {
  const auto save = [&](CheckpointFolder& checkpoints, int64_t step) {
    header.position.step = step;
    checkpoints.save_in_background(header, groups, states, true);
    checkpoints.wait();
    return !checkpoints.take_error();
  };
  for (const fault_kind kind : {FAULT_EIO, FAULT_ENOSPC, FAULT_EINTR}) {
    for (int call = 1, seen = call; call <= seen; ++call) {
      fs::remove_all(folder);
      CheckpointFolder checkpoints(folder, 1);
      ASSERT_TRUE(save(checkpoints, 1));
      faults_arm("checkpoints/", kind, call, 1, nullptr);
      const bool written = save(checkpoints, 2);
      seen = std::max(seen, faults_seen());
      faults_disarm();
      const auto newest = newest_checkpoint(folder, [](const std::string& damage) { ADD_FAILURE() << damage; });
      ASSERT_TRUE(newest);
      // A step that could not be made the best one is reported, too, and is there.
      EXPECT_TRUE(!written || read_checkpoint_header(*newest).position.step == 2) << "call " << call;
      EXPECT_TRUE(written || kind != FAULT_EINTR) << "call " << call;
      SafetensorsFile(folder / "best.safetensors").verify();
      ASSERT_TRUE(save(checkpoints, 3)) << "the run continues";
      remove_leftovers(folder);
      for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        EXPECT_FALSE(entry.path().filename().string().ends_with(".tmp")) << entry.path();
      }
    }
  }
}

TEST_F(Checkpoints, stay_when_their_folder_cannot_be_listed_whole) {
  CheckpointFolder checkpoints(folder, 1);
  for (const fault_kind kind : {FAULT_EIO, FAULT_EINTR, FAULT_ENDS}) {
    for (const char* call : {"opendir,openat", "readdir"}) {
      ++header.position.step;
      faults_arm("checkpoints", kind, kind == FAULT_EINTR ? 1 : 0, 1, call);
      checkpoints.save_in_background(header, groups, states, true);
      checkpoints.wait();
      EXPECT_GT(faults_raised(), 0);
      faults_disarm();
      EXPECT_FALSE(checkpoints.take_error()) << call;
      const auto newest = newest_checkpoint(folder, [](const std::string& damage) { ADD_FAILURE() << damage; });
      ASSERT_TRUE(newest);
      EXPECT_EQ(read_checkpoint_header(*newest).position.step, header.position.step);
      for (const fs::path& path : list_folder(folder)) EXPECT_NE(path.extension(), ".damaged") << call;
    }
  }
  ++header.position.step;
  checkpoints.save_in_background(header, groups, states, true);
  checkpoints.wait();
  EXPECT_EQ(step_checkpoints(folder).size(), 1) << "those that stayed are removed after the next";
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
