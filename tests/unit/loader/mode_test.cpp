#include "loader/mode.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Some GPUs, of which all or none reach each other.
DeviceView gpus(int count, bool reach = true) {
  return {count, [](int device) { return "card " + std::to_string(device); },
          [reach](int a, int b) { return reach || a == b; }};
}

Config with(int64_t data_gpu, int64_t model_gpu, const std::string& device = "auto") {
  Config config;
  config.data.data_gpu = data_gpu, config.data.model_gpu = model_gpu, config.training.device = device;
  return config;
}

TEST(ModeTest, both_flags_make_it_multi_gpu) {
  const Mode mode = choose_mode(with(0, 1), gpus(2));
  EXPECT_EQ(mode.kind, Mode::Kind::multi_gpu);
  EXPECT_EQ(mode.data_device, 0);
  EXPECT_EQ(mode.model_device, 1);
  EXPECT_FALSE(mode.staged);
  EXPECT_TRUE(mode.warnings.empty());
}

TEST(ModeTest, one_card_may_be_both) {
  Config config = with(0, 0);
  EXPECT_EQ(choose_mode(config, gpus(1)).kind, Mode::Kind::multi_gpu);
  EXPECT_FALSE(choose_mode(config, gpus(1)).staged);
  config.data.staged_peer_copy = true;
  EXPECT_TRUE(choose_mode(config, gpus(1)).staged);
}

TEST(ModeTest, no_flag_is_the_single_gpu_mode_or_the_cpu_without_a_word) {
  const Mode gpu = choose_mode(with(-1, -1), gpus(2)), named = choose_mode(with(-1, -1, "cuda:1"), gpus(2)),
             cpu = choose_mode(with(-1, -1), gpus(0)), wanted = choose_mode(with(-1, -1, "cpu"), gpus(2));
  EXPECT_EQ(gpu.kind, Mode::Kind::single_gpu);
  EXPECT_EQ(gpu.model_device, 0);
  EXPECT_EQ(named.model_device, 1);
  EXPECT_EQ(cpu.kind, Mode::Kind::cpu);
  EXPECT_EQ(cpu.model_device, -1);
  EXPECT_EQ(wanted.kind, Mode::Kind::cpu);
  for (const Mode& mode : {gpu, named, cpu, wanted}) {
    EXPECT_TRUE(mode.warnings.empty());
    EXPECT_EQ(mode.data_device, mode.model_device);
  }
}

struct Fallback {
  std::string name;
  Config config;
  DeviceView devices;
  Mode::Kind kind;
  int device;
  std::vector<std::string> says;  // the key, and the way out
};

TEST(ModeTest, whatever_stands_in_the_way_is_one_warning_or_with_strict_devices_an_error) {
  using Kind = Mode::Kind;
  Config slow = with(0, 1), in_host_memory = with(0, 1);
  slow.data.use_native_loading = false, in_host_memory.data.prefetch_to_gpu = false;
  const std::vector<Fallback> cases = {
      {"data alone", with(1, -1), gpus(2), Kind::single_gpu, 0, {"data.data_gpu is 1", "--model-gpu"}},
      {"model alone", with(-1, 1), gpus(2), Kind::single_gpu, 1, {"data.model_gpu is 1", "--data-gpu"}},
      {"no such data GPU", with(5, 1), gpus(2), Kind::single_gpu, 1, {"data.data_gpu is 5", "2 GPUs"}},
      {"no such model GPU", with(0, 7), gpus(1), Kind::single_gpu, 0, {"data.model_gpu is 7", "1 GPU,"}},
      {"out of reach", with(0, 1), gpus(2, false), Kind::single_gpu, 1, {"data.staged_peer_copy: true"}},
      {"no GPU at all", with(0, 1), gpus(0), Kind::cpu, -1, {"no usable GPU", "on the CPU"}},
      {"the CPU is asked for", with(0, 1, "cpu"), gpus(2), Kind::cpu, -1, {"training.device is cpu"}},
      {"the slow path", slow, gpus(2), Kind::single_gpu, 1, {"data.use_native_loading"}},
      {"ready batches in host memory", in_host_memory, gpus(2), Kind::single_gpu, 1, {"--no-prefetch-to-gpu"}},
  };
  for (Fallback one : cases) {
    const Mode mode = choose_mode(one.config, one.devices);
    EXPECT_EQ(mode.kind, one.kind) << one.name;
    EXPECT_EQ(mode.model_device, one.device) << one.name;
    EXPECT_EQ(mode.data_device, one.device) << one.name;
    ASSERT_EQ(mode.warnings.size(), 1U) << one.name;
    for (const std::string& part : one.says) {
      EXPECT_NE(mode.warnings[0].find(part), std::string::npos) << one.name << ": " << mode.warnings[0];
    }
    one.config.data.strict_devices = true;
    try {
      choose_mode(one.config, one.devices);
      ADD_FAILURE() << one.name << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_status(), 2);
      EXPECT_NE(std::string(error.what()).find("data."), std::string::npos) << error.what();
    }
  }
}

TEST(ModeTest, gpus_out_of_reach_are_staged_where_that_is_allowed) {
  Config config = with(0, 1);
  config.data.staged_peer_copy = true;
  const Mode staged = choose_mode(config, gpus(2, false));
  EXPECT_EQ(staged.kind, Mode::Kind::multi_gpu);
  EXPECT_TRUE(staged.staged);
  EXPECT_FALSE(choose_mode(config, gpus(2)).staged) << "directly where they can";
}

TEST(ModeTest, a_device_that_is_not_there_is_an_error) {
  EXPECT_THROW(choose_mode(with(-1, -1, "cuda:2"), gpus(2)), Error);
  EXPECT_THROW(choose_mode(with(-1, -1, "cuda"), gpus(0)), Error);
}

TEST(Mode, processes_of_a_machine_share_its_gpus) {
  int first = -1;
  EXPECT_EQ(own_devices(gpus(8), 0, 1, first).count, 8);
  EXPECT_EQ(first, 0);
  for (int process = 0; process < 4; ++process) {
    EXPECT_EQ(own_devices(gpus(4), process, 4, first).count, 1);
    EXPECT_EQ(first, process);
    EXPECT_EQ(own_devices(gpus(8), process, 4, first).count, 2);  // for --data-gpu 0 --model-gpu 1
    EXPECT_EQ(first, 2 * process);
    EXPECT_EQ(own_devices(gpus(2), process, 4, first).count, 1);
    EXPECT_EQ(first, process % 2);
  }
  EXPECT_EQ(own_devices(gpus(0), 1, 2, first).count, 0);
}

}  // namespace
}  // namespace myxtts
