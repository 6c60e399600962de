// Uses a fake NVML library with a scripted load (tests/tools/fake_nvml.cpp).
#include "device/gpu_readings.h"

#include "base/error.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Environment variables of one test.
class Fake : public testing::Test {
 protected:
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }
  void SetUp() override { set("MYXTTS_NVML_LIBRARY", MYXTTS_FAKE_NVML); }
  void TearDown() override {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_input ? error.what() : "another kind of error";
  }
  return "";
}

TEST_F(Fake, gives_every_figure_in_its_unit) {
  set("FAKE_NVML_WAVE", "0,80,0");
  GpuReadings gpu = GpuReadings::of_number(1);
  EXPECT_EQ(gpu.name(), "Fake GPU 1");
  EXPECT_EQ(gpu.limits().memory_mb, 16384);
  EXPECT_EQ(gpu.limits().power_w, 300);
  EXPECT_EQ(gpu.limits().sm_mhz, 1980);
  EXPECT_EQ(gpu.limits().memory_mhz, 2619);
  const GpuSample sample = gpu.sample();
  EXPECT_EQ(sample.utilisation_percent, 80);
  EXPECT_EQ(sample.memory_used_mb, 4096);
  EXPECT_EQ(sample.power_w, 252);
  EXPECT_EQ(sample.sm_mhz, 1500);
  EXPECT_EQ(sample.memory_mhz, 2600);
  EXPECT_EQ(sample.temperature_c, 61);
  EXPECT_EQ(sample.throttled, "");
  const PcieTraffic pcie = gpu.measure_pcie();
  EXPECT_EQ(pcie.from_gpu_mb_s, 2);
  EXPECT_EQ(pcie.to_gpu_mb_s, 100);
}

TEST_F(Fake, a_card_that_does_not_count_activity_has_none) {
  GpuReadings gpu = GpuReadings::of_number(0);
  pause_ms(5);
  const GpuSample sample = gpu.sample();
  EXPECT_FALSE(sample.sm_active_percent);
  EXPECT_FALSE(sample.tensor_active_percent);
  EXPECT_FALSE(sample.pcie_to_gpu_mb_s);
}

TEST_F(Fake, a_card_that_counts_gives_the_mean_since_the_last_sample) {
  set("FAKE_NVML_GPM", "1");
  set("FAKE_NVML_WAVE", "0,100,0.02");
  GpuReadings gpu = GpuReadings::of_number(0);
  for (int i = 0; i < 3; ++i) {
    pause_ms(200);  // ten periods: 90 % half of the time, for any phase
    const GpuSample sample = gpu.sample();
    EXPECT_NEAR(sample.sm_active_percent.value(), 45, 4);
    EXPECT_NEAR(sample.tensor_active_percent.value(), 25, 3);
    EXPECT_EQ(sample.pcie_from_gpu_mb_s, 3);
    EXPECT_EQ(sample.pcie_to_gpu_mb_s, 200);
  }
}

TEST_F(Fake, says_in_words_why_clocks_are_held_down) {
  const std::map<std::string, std::string> words = {{"1", ""},
                                                    {"2", ""},
                                                    {"4", "power limit"},
                                                    {"36", "power limit, heat"},
                                                    {"72", "hardware slowdown, extreme heat"}};
  GpuReadings gpu = GpuReadings::of_number(0);
  for (const auto& [bits, text] : words) {
    set("FAKE_NVML_REASONS", bits);
    EXPECT_EQ(gpu.sample().throttled, text) << bits;
  }
}

TEST_F(Fake, is_opened_by_the_place_that_cuda_gives) {
  EXPECT_EQ(GpuReadings::of_bus_id("0000:02:00.0").name(), "Fake GPU 1");
  EXPECT_NE(refusal([] { GpuReadings::of_bus_id("0000:09:00.0"); }).find("0000:09:00.0"), std::string::npos);
}

TEST_F(Fake, several_are_open_at_once_and_are_moved) {
  GpuReadings first = GpuReadings::of_number(0);
  {
    const GpuReadings second = GpuReadings::of_number(1);
    EXPECT_EQ(second.name(), "Fake GPU 1");
  }
  GpuReadings moved = std::move(first);
  EXPECT_TRUE(moved.sample().utilisation_percent);
}

TEST_F(Fake, refuses_a_number_that_is_not_there) {
  EXPECT_NE(refusal([] { GpuReadings::of_number(2); }).find("from 0 to 1"), std::string::npos);
  EXPECT_NE(refusal([] { GpuReadings::of_number(-1); }).find("no GPU -1"), std::string::npos);
  set("FAKE_NVML_GPUS", "0");
  EXPECT_NE(refusal([] { GpuReadings::of_number(0); }).find("finds no GPU"), std::string::npos);
}

TEST_F(Fake, rejects_a_missing_or_failing_driver) {
  set("FAKE_NVML_FAILS", "init");
  EXPECT_NE(refusal([] { GpuReadings::of_number(0); }).find("Driver Not Loaded"), std::string::npos);
  set("MYXTTS_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
  EXPECT_NE(refusal([] { GpuReadings::of_number(0); }).find("/nowhere/libnvidia-ml.so.1"), std::string::npos);
}

}  // namespace
}  // namespace myxtts
