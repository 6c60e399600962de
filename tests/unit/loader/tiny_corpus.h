// A corpus of a few dozen short clips for the loader's tests, some at another rate, and a deadline for what must not
// hang.
#pragma once

#include "audio/wav.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "corpus/corpus.h"
#include "loader/loader.h"
#include "plan/batch_plan.h"
#include "plan/shapes.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace myxtts {

class TinyCorpus : public testing::Test {
 protected:
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "myxtts_loader_test";
  Config config;

  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder / "wavs");
    config.data.val_share = 0, config.data.batch_size = {4, 4}, config.data.shape_buckets = 3;
    std::string rows;
    Random random(1);
    for (int i = 0; i < 30; ++i) {
      const std::string id = fmt::format("clip{:02}", i);
      write_clip(id, 15000 + random.below(20000), i % 7 == 3 ? 16000 : 22050);
      rows += fmt::format("{}|text number {}\n", id, i);
    }
    write_file_atomically(folder / "metadata.csv", rows);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void write_clip(const std::string& id, size_t samples, int rate) const {
    Random random(hash_text(id));
    std::vector<float> wave(samples);
    for (size_t i = 0; i < samples; ++i) {
      wave[i] = 0.3F * std::sin(0.05F * static_cast<float>(i)) + 0.05F * static_cast<float>(random.uniform(-1, 1));
    }
    write_wav(folder / "wavs" / (id + ".wav"), wave, rate);
  }

  Corpus open() const { return open_corpus(folder, config, {}); }
  BatchPlan plan_of(const Corpus& corpus) const { return {plan_shapes(corpus.index.lengths(), config.data).shapes, 7}; }
  static LoaderOptions options(size_t workers, size_t ring = 4) {
    LoaderOptions options;
    options.workers = workers, options.ring_batches = ring, options.reading_batches = 3;
    return options;
  }
};

// Runs `work`, or ends the test program if it hangs: a thread that hangs cannot be ended alone. `seconds` is for an
// idle machine; a loaded one, or a sanitizer, gets ten times as long.
template <typename Work>
void within(double seconds, const Work& work) {
  seconds *= 10;
  std::future<void> done = std::async(std::launch::async, work);
  if (done.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) {
    std::fprintf(stderr, "it hangs: more than %.0f s\n", seconds);
    std::abort();
  }
  done.get();
}

// What the error says that `work` ends with.
template <typename Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace myxtts
