#include "synth/voice_file.h"

#include "artifacts/safetensors.h"
#include "base/error.h"
#include "synth/vocoder_file.h"
#include "tools/faults.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

TEST(VoiceFile, without_its_tensors_is_refused_before_memory_is_taken_for_them) {
  const fs::path file = fs::path(testing::TempDir()) / "no_tensors.safetensors";
  write_safetensors(file, {}, {{"format", "myxtts"}});
  ParameterLayout layout;
  layout.add("speakers.table", {int64_t{1} << 44, 4}, 1);  // more than any machine has
  layout.arrange();
  EXPECT_THROW(load_ema_weights(file, layout), Error);
}

// Another program's file: it has no checksum that would find the cut.
TEST(VoiceFile, of_hifigan_that_is_cut_short_while_it_is_read_is_refused) {
  const fs::path file = fs::path(testing::TempDir()) / "cut.safetensors";
  const std::string header = R"({"w":{"dtype":"F32","shape":[65536],"data_offsets":[0,262144]}})";
  std::ofstream out(file, std::ios::binary);
  const uint64_t size = header.size();
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << header << std::string(262144, 'x');
  out.close();
  MelSpec mel;
  mel.hop_length = 256;
  const auto refusal = [&]() -> std::string {
    try {
      read_hifigan(file, mel, at::kCPU);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal().find("conv_pre"), std::string::npos);  // a tensor is missing
  faults_arm("cut.safetensors", FAULT_ENDS, 1, 1, "mmap");
  EXPECT_NE(refusal().find("was cut short while it was read"), std::string::npos) << refusal();
  faults_disarm();
}

}  // namespace
}  // namespace myxtts
