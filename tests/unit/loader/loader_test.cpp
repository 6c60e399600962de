#include "loader/loader.h"

#include "base/clock.h"
#include "base/error.h"
#include "corpus/pack.h"
#include "features/mel.h"
#include "loader/backend.h"
#include "loader/make_batch.h"
#include "loader_fixture.h"

#include <fstream>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

TEST_F(LoaderTest, feeds_just_what_the_plan_says_for_any_number_of_workers) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  for (const size_t workers : {1U, 3U, 8U}) {
    Loader loader(corpus, plan, options(workers));
    for (uint64_t i = 0; i < 2 * plan.batches_per_epoch() + 3; ++i) {
      const BatchLease batch = loader.next();
      ASSERT_EQ(batch->epoch, i / plan.batches_per_epoch());
      ASSERT_EQ(batch->index, i % plan.batches_per_epoch());
      const BatchLease want = reference(corpus, plan, *batch, 1);
      ASSERT_EQ(copy_to_host(*batch)->hash(), want->hash()) << workers << " workers, batch " << i;
    }
  }
}

TEST_F(LoaderTest, the_slow_path_feeds_the_same) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions slow = options(1);
  slow.native = false;
  const std::unique_ptr<BatchSource> one = open_loader(corpus, plan, slow),
                                     other = open_loader(corpus, plan, options(2));
  for (uint64_t i = 0; i < plan.batches_per_epoch() + 2; ++i) {
    const BatchLease a = one->next(), b = other->next();
    ASSERT_EQ(copy_to_host(*a)->hash(), copy_to_host(*b)->hash());
    ASSERT_EQ(a->clips, b->clips);
    ASSERT_NEAR(a->seconds, b->seconds, 1e-9);
  }
  EXPECT_GT(one->stats().consumer_waits_s, 0);
  slow.device = 0;
  EXPECT_THROW(open_loader(corpus, plan, slow), Error);
}

TEST_F(LoaderTest, a_batch_that_is_held_is_never_overwritten_and_all_held_is_an_error) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    std::vector<BatchLease> held;
    std::vector<uint64_t> hashes;
    {
      Loader loader(corpus, plan, options(2, 4));
      for (int i = 0; i < 3; ++i) {
        held.push_back(loader.next());
        hashes.push_back(held.back()->hash());
      }
      for (uint64_t i = 0; i < 3 * plan.batches_per_epoch(); ++i) loader.next();  // the one place that is left
      held.push_back(loader.next());
      hashes.push_back(held.back()->hash());
      EXPECT_NE(error_of([&] { loader.next(); }).find("all 4 batches of the ring are held"), std::string::npos);
      std::thread([&] { held.erase(held.begin()), hashes.erase(hashes.begin()); }).join();  // let go on any thread
      loader.next();
    }
    for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i]->hash(), hashes[i]) << "after the loader ended";
  });
}

TEST_F(LoaderTest, a_batch_holds_the_arrays_that_were_asked_for) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions wanted = options(2);
  wanted.arrays = {"mel_lengths", "mel"};
  const BatchLease few = Loader(corpus, plan, wanted).next(), all = Loader(corpus, plan, options(2)).next();
  EXPECT_TRUE(same_values<int32_t>(*few, *all, "mel_lengths"));
  EXPECT_TRUE(same_values<float>(*few, *all, "mel"));
  EXPECT_EQ(few->arrays.size(), 2U);
  EXPECT_NE(error_of([&] { (*few)["tokens"]; }).find("tokens"), std::string::npos);
  wanted.arrays = {"mels"};
  EXPECT_NE(error_of([&] { Loader(corpus, plan, wanted); }).find("did you mean mel?"), std::string::npos);
}

TEST_F(LoaderTest, rows_have_a_speaker_a_language_and_a_reference) {
  Corpus corpus = open_with_speakers();
  corpus.number_as({"another", "speaker 2", "speaker 0"}, {"en", "fa"});
  const BatchPlan plan = plan_of(corpus);
  const RowBuilder builder(corpus, plan, conditioned_voice_arrays(), 1);
  LoaderOptions wanted = options(3), slow = options(1);
  wanted.arrays = slow.arrays = conditioned_voice_arrays(), slow.native = false;
  const std::unique_ptr<BatchSource> loader = open_loader(corpus, plan, wanted),
                                     other = open_loader(corpus, plan, slow);
  std::set<uint32_t> references_of_first;
  for (uint64_t i = 0; i < 6 * plan.batches_per_epoch(); ++i) {
    const BatchLease batch = copy_to_host(*loader->next());
    ASSERT_EQ(batch->hash(), copy_to_host(*other->next())->hash());
    for (size_t row = 0; row < batch->clips.size(); ++row) {
      const uint32_t number = batch->clips[row];
      const CorpusClip clip = corpus.clip(number);
      const std::map<std::string, int32_t> numbers = {{"speaker 0", 2}, {"speaker 1", -1}, {"speaker 2", 1}};
      ASSERT_EQ((*batch)["speaker"].values<int32_t>()[row], numbers.at(clip.speaker));
      ASSERT_EQ((*batch)["language"].values<int32_t>()[row], clip.language == "fa" ? 1 : 0);
      const RowBuilder::Reference part = builder.reference_of(batch->epoch, number);
      ASSERT_EQ(part.clip.speaker, clip.speaker);
      ASSERT_NE(part.number, number);
      if (number == 4) references_of_first.insert(part.number);
      // The mel of the first rows' is that of the stretch, and zeros beyond it.
      if (static_cast<int64_t>(row) >= (*batch)["reference"].dims[0]) continue;
      const auto frames = static_cast<size_t>((*batch)["reference_lengths"].values<int32_t>()[row]);
      ASSERT_EQ(frames, part.clip.length.mel_frames);
      const size_t values = static_cast<size_t>(reference_frames * corpus.mel.n_mels);
      const std::span<float> got = (*batch)["reference"].values<float>().subspan(row * values, values);
      const Mel want = MelCpu(corpus.mel).compute(read_used_part(corpus, part.clip));
      ASSERT_EQ(want.values.size(), frames * static_cast<size_t>(corpus.mel.n_mels));
      ASSERT_TRUE(std::equal(want.values.begin(), want.values.end(), got.begin()));
      ASSERT_TRUE(std::all_of(got.begin() + static_cast<std::ptrdiff_t>(want.values.size()), got.end(),
                              [](float value) { return value == 0; }));
    }
  }
  EXPECT_GT(references_of_first.size(), 2U);
}

TEST_F(LoaderTest, crops_are_parts_of_their_clips_with_their_own_mel) {
  const Corpus corpus = open();
  const BatchPlan plan(plan_crops(corpus.index, config.data, corpus.mel.frames(crop_samples)).shapes, 7);
  const RowBuilder builder(corpus, plan, vocoder_arrays(), 1);
  LoaderOptions wanted = options(3);
  wanted.arrays = vocoder_arrays();
  const std::unique_ptr<BatchSource> loader = open_loader(corpus, plan, wanted);
  std::set<uint64_t> firsts;
  for (uint64_t i = 0; i < 3 * plan.batches_per_epoch(); ++i) {
    const BatchLease batch = copy_to_host(*loader->next());
    ASSERT_EQ((*batch)["samples"].dims,
              (std::vector<int64_t>{static_cast<int64_t>(batch->clips.size()), crop_samples}));
    for (size_t row = 0; row < batch->clips.size(); ++row) {
      const CorpusClip clip = corpus.clip(batch->clips[row]), crop = builder.crop(*batch, row, clip);
      ASSERT_GE(crop.first_sample, clip.first_sample);
      ASSERT_LE(crop.first_sample + crop.samples, clip.first_sample + clip.samples);
      firsts.insert(crop.first_sample - clip.first_sample);
      const std::vector<float> want = read_used_part(corpus, crop);
      const std::span<float> got = (*batch)["samples"].values<float>().subspan(row * crop_samples, crop_samples);
      ASSERT_GE(want.size(), got.size());
      ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
      const Mel mel = MelCpu(corpus.mel).compute(want);
      const auto values = static_cast<size_t>(corpus.mel.frames(crop_samples) * corpus.mel.n_mels);
      const std::span<float> mels = (*batch)["mel"].values<float>().subspan(row * values, values);
      ASSERT_TRUE(std::equal(mels.begin(), mels.end(), mel.values.begin()));
    }
  }
  EXPECT_GT(firsts.size(), 20U);
}

TEST_F(LoaderTest, a_reference_that_breaks_leaves_its_row_without_one) {
  const Corpus corpus = open_with_speakers();
  const BatchPlan plan = plan_of(corpus);
  const RowBuilder builder(corpus, plan, conditioned_voice_arrays(), 1);
  const PlannedBatch planned = plan.batch(0, 0);
  const RowBuilder::Reference part = builder.reference_of(0, planned.clips.front());
  if (std::ranges::find(planned.clips, part.number) != planned.clips.end()) GTEST_SKIP() << "it is in the batch itself";
  fs::remove(part.clip.place.path);
  const BatchLease batch = make_batch(builder, planned, 1);
  EXPECT_EQ((*batch)["reference_lengths"].values<int32_t>()[0], 0);
  EXPECT_EQ(batch->clips, planned.clips);
  EXPECT_TRUE(batch->replaced.empty());
}

TEST_F(LoaderTest, a_batch_tells_its_way_through_the_stages) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  for (const bool native : {true, false}) {
    LoaderOptions wanted = options(3);
    wanted.native = native;
    const int64_t before_ns = now_ns();
    const std::unique_ptr<BatchSource> source = open_loader(corpus, plan, wanted);
    double read_s = 0, features_s = 0;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < plan.batches_per_epoch(); ++i) {
      const BatchTimes times = source->next()->times;
      EXPECT_LE(times.planned_ns, times.reading_ns);
      EXPECT_LT(times.reading_ns, times.rows_done_ns);
      EXPECT_LE(times.rows_done_ns, times.finished_ns);
      EXPECT_LE(times.finished_ns, now_ns());
      EXPECT_GT(times.read_s, 0);
      EXPECT_GT(times.decode_s, 0);
      EXPECT_GT(times.features_s, 0);
      EXPECT_LE(times.read_s + times.decode_s + times.features_s, 3e-9 * static_cast<double>(now_ns() - before_ns) + 1);
      EXPECT_GT(times.bytes_read, 4U * 2U * 15000U);
      read_s += times.read_s, features_s += times.features_s, bytes += times.bytes_read;
    }
    const LoaderStats stats = source->stats();
    EXPECT_GE(stats.read_s, read_s - 1e-9) << "with the batches on their way";
    EXPECT_GE(stats.features_s, features_s - 1e-9);
    EXPECT_GE(stats.bytes_read, bytes);
    EXPECT_LE(stats.ready_batches, wanted.ring_batches);
  }
}

TEST_F(LoaderTest, begins_anywhere_at_once_and_for_any_rank) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions late = options(2);
  // So late that a loader that visits the epochs before it never comes there.
  late.epoch = 1'000'000'000'000, late.index = 2, late.rank = 1, late.world_size = 2;
  within(60, [&] {
    Loader loader(corpus, plan, late);
    const BatchLease batch = loader.next();
    EXPECT_EQ(batch->clips, plan.batch(late.epoch, 2, 1, 2).clips);
    EXPECT_EQ(batch->rows(), 2);
  });
  for (const uint64_t world_size : {0U, 1U, 3U}) {
    late.world_size = world_size;
    EXPECT_THROW(Loader(corpus, plan, late), Error) << world_size;
  }
}

TEST_F(LoaderTest, a_stalled_consumer_stops_it_and_ending_it_mid_epoch_returns_at_once) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  for (int trial = 0; trial < 20; ++trial) {
    Loader loader(corpus, plan, options(4, 2));
    if (trial % 2 == 0) loader.next();
    if (trial % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LE(loader.stats().bytes_read, 3U * 4U * 80'000U) << "no more than the ring holds";
  }
  within(60, [&] { const Loader loader(corpus, plan, options(4, 2)); });
}

TEST_F(LoaderTest, a_full_ring_waits_for_a_stalled_consumer_and_then_continues_unchanged) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    Loader loader(corpus, plan, options(3, 3)), plain(corpus, plan, options(1, 2));
    for (int i = 0; i < 12; ++i) {
      if (i % 4 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_LE(loader.stats().bytes_read, (static_cast<uint64_t>(i) + 3) * 4 * 80'000)
          << "no more than the ring holds";
      ASSERT_EQ(copy_to_host(*loader.next())->hash(), copy_to_host(*plain.next())->hash()) << i;
    }
  });
}

TEST_F(LoaderTest, a_consumer_may_wait_a_while_at_a_time) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    Loader loader(corpus, plan, options(2, 3));
    std::vector<BatchLease> held;
    for (int i = 0; i < 3; ++i) {
      while (!loader.wait(std::chrono::milliseconds(1))) {
      }
      held.push_back(loader.next());
    }
    EXPECT_NE(error_of([&] { loader.wait(std::chrono::milliseconds(1)); }).find("are held"), std::string::npos);
    held.clear();
    loader.stop();
    while (loader.wait(std::chrono::milliseconds(1)) && error_of([&] { loader.next(); }).empty()) {
    }
    EXPECT_TRUE(loader.wait(std::chrono::milliseconds(1))) << "it does not wait for what will never come";
  });
}

TEST_F(LoaderTest, stopped_from_elsewhere_it_lets_its_consumer_go) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(30, [&] {
    Loader loader(corpus, plan, options(2));
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      loader.stop();
    });
    EXPECT_NE(error_of([&] {
                for (;;) loader.next();
              }).find("stopped"),
              std::string::npos);
    other.join();
  });
}

// The CPU's, but one of its stages fails at the third batch, with an error that knows nothing of clips.
class FailingBackend : public LoaderBackend {
 public:
  FailingBackend(std::unique_ptr<LoaderBackend> real, std::string stage)
      : real_(std::move(real)), stage_(std::move(stage)) {}
  std::vector<size_t> begin(LoaderSlot& slot) override {
    fail_at("begin", slot);
    return real_->begin(slot);
  }
  uint64_t make_row(LoaderSlot& slot, size_t row) override {
    if (row == 1) fail_at("make_row", slot);
    return real_->make_row(slot, row);
  }
  void finish(LoaderSlot& slot) override {
    fail_at("finish", slot);
    real_->finish(slot);
  }
  void take(LoaderSlot& slot, StreamHandle) override { fail_at("take", slot); }
  void give_back(LoaderSlot&, StreamHandle) override {}
  void stop() override { real_->stop(); }

 private:
  void fail_at(const std::string& stage, const LoaderSlot& slot) const {
    if (stage == stage_ && slot.sequence == 2) throw std::runtime_error("the card fell off");
  }
  std::unique_ptr<LoaderBackend> real_;
  const std::string stage_;
};

TEST_F(LoaderTest, an_error_in_any_stage_comes_after_the_batches_before_it_with_the_clips_name) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  for (const std::string stage : {"begin", "make_row", "finish"}) {
    for (const size_t ring : {2U, 8U}) {
      within(30, [&] {
        const LoaderOptions wanted = options(3, ring);
        Loader loader(corpus, plan, wanted,
                      std::make_unique<FailingBackend>(make_cpu_backend(corpus, plan, wanted), stage));
        for (int i = 0; i < 2; ++i) EXPECT_EQ(loader.next()->index, static_cast<uint64_t>(i)) << stage;
        const std::string error = error_of([&] { loader.next(); });
        EXPECT_NE(error.find("the card fell off"), std::string::npos) << stage << ": " << error;
        const uint32_t clip = plan.batch(0, 2).clips[1];
        EXPECT_NE(error.find(corpus.clip(clip).id), std::string::npos) << stage << ": " << error;
        EXPECT_NE(error_of([&] { loader.next(); }), "no error") << stage;
      });
    }
  }
}

TEST_F(LoaderTest, a_clip_that_breaks_is_replaced_as_in_a_plain_batch) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  write_file_atomically(folder / "wavs" / "clip05.wav", "broken");
  write_clip("clip11", 90000, 22050);                     // longer now
  fs::resize_file(folder / "wavs" / "clip20.wav", 5000);  // cut short
  fs::remove(folder / "wavs" / "clip21.wav");             // gone
  Loader loader(corpus, plan, options(3));
  std::set<std::string> replaced;
  for (uint64_t i = 0; i < 3 * plan.batches_per_epoch(); ++i) {
    const BatchLease batch = loader.next();
    const BatchLease want = reference(corpus, plan, *batch, 1);
    ASSERT_EQ(copy_to_host(*batch)->hash(), want->hash());
    ASSERT_EQ(batch->replaced.size(), want->replaced.size());
    for (const BadClip& bad : batch->replaced) replaced.insert(bad.id);
  }
  EXPECT_EQ(replaced, (std::set<std::string>{"clip05", "clip11", "clip20", "clip21"}));
}

TEST_F(LoaderTest, an_error_reaches_the_consumer_with_the_clips_name_and_never_hangs) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  fs::remove_all(folder / "wavs");
  within(60, [&] {
    Loader loader(corpus, plan, options(3));
    EXPECT_NE(error_of([&] { loader.next(); }).find("clip"), std::string::npos) << "no clip is left";
    EXPECT_THROW(loader.next(), Error);
  });
}

// Batches that are ready at once.
class InstantBackend : public LoaderBackend {
 public:
  std::vector<size_t> begin(LoaderSlot&) override { return {}; }
  uint64_t make_row(LoaderSlot&, size_t) override { return 0; }
  void finish(LoaderSlot&) override {}
  void take(LoaderSlot&, StreamHandle) override {}
  void give_back(LoaderSlot&, StreamHandle) override {}
  void stop() override {}
};

TEST_F(LoaderTest, a_slow_consumer_needs_fewer_batches_ahead_and_gets_every_one_of_them_all_the_same) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions tuned = options(1, 16);
  tuned.tune = true, tuned.reading_batches = 6, tuned.max_reading_batches = 12;
  std::vector<std::string> said;
  tuned.say = [&](const std::string& sentence) { said.push_back(sentence); };
  within(180, [&] {
    Loader loader(corpus, plan, tuned, std::make_unique<InstantBackend>());
    uint64_t count = 0;
    const auto take = [&](int batches, int pause_ms) {
      for (int i = 0; i < batches; ++i, ++count) {
        const BatchLease batch = loader.next();
        ASSERT_EQ(batch->epoch * plan.batches_per_epoch() + batch->index, count);
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
      }
    };
    const auto tuned_down = [&] { return loader.stats().ring_batches < 16 && loader.stats().reading_batches < 6; };
    for (int window = 0; window < 1000 && !tuned_down(); ++window) take(64, 2);  // more if others hold it up
    EXPECT_TRUE(tuned_down());
    EXPECT_GE(said.size(), 2U);
    take(500, 0);
  });
}

TEST_F(LoaderTest, a_ring_that_was_tuned_down_still_has_all_its_places_for_whoever_holds_them) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions tuned = options(1, 8);
  tuned.tune = true;
  within(180, [&] {
    Loader loader(corpus, plan, tuned, std::make_unique<InstantBackend>());
    const auto take = [&](int batches) {
      for (int i = 0; i < batches; ++i) loader.next(), std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
    for (int window = 0; window < 1000 && loader.stats().ring_batches == 8; ++window) take(64);
    ASSERT_LT(loader.stats().ring_batches, 8U);
    take(8);  // each place comes back once, and some rest from then on
    std::vector<BatchLease> held;
    for (int i = 0; i < 8; ++i) held.push_back(loader.next());
    EXPECT_NE(error_of([&] { loader.next(); }).find("all 8 batches of the ring are held"), std::string::npos);
    held.pop_back();
    loader.next();
  });
}

TEST_F(LoaderTest, tuned_it_feeds_the_same_and_keeps_going_when_workers_rest) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions tuned = options(6, 8);
  tuned.tune = true;
  Loader loader(corpus, plan, tuned), plain(corpus, plan, options(2));
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(copy_to_host(*loader.next())->hash(), copy_to_host(*plain.next())->hash());
    if (i < 70) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(loader.stats().active_workers, 1U);
}

TEST_F(LoaderTest, validation_has_empty_rows_with_lengths_of_zero) {
  config.data.val_share = 0.2;
  const Corpus corpus = open();
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).validation, 1, BatchPlan::Visit::every_clip);
  Loader loader(corpus, plan, options(2));
  size_t seen = 0, empty = 0;
  for (uint64_t i = 0; i < plan.batches_per_epoch(); ++i) {
    const BatchLease batch = loader.next();
    for (int64_t row = 0; row < batch->rows(); ++row) {
      const bool is_empty = batch->clips[static_cast<size_t>(row)] == no_clip;
      ASSERT_EQ((*batch)["mel_lengths"].values<int32_t>()[static_cast<size_t>(row)] == 0, is_empty);
      ASSERT_EQ(batch->lengths[static_cast<size_t>(row)].mel_frames == 0, is_empty);
      is_empty ? ++empty : ++seen;
    }
  }
  EXPECT_EQ(seen, 6U);
  EXPECT_GT(empty, 0U);
}

int64_t status_kb(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(line.find(':') + 1));
  }
  return 0;
}

size_t open_files() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

TEST_F(LoaderTest, memory_and_open_files_stay_flat) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  Loader loader(corpus, plan, options(2));
  for (int i = 0; i < 300; ++i) loader.next();
  const int64_t before_kb = status_kb("VmRSS");
  const size_t files = open_files();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int many = 200;
  constexpr double growth = 0.1;  // the sanitizers keep what was freed for a while, and find leaks by themselves
#else
  constexpr int many = 1500;
  constexpr double growth = 0.02;
#endif
  for (int i = 0; i < many; ++i) loader.next();
  EXPECT_LT(static_cast<double>(status_kb("VmRSS") - before_kb), growth * static_cast<double>(before_kb));
  EXPECT_LE(open_files(), files + 2);  // a worker has one open while it reads
}

}  // namespace
}  // namespace myxtts
