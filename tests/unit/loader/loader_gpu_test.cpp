#include "base/clock.h"
#include "base/error.h"
#include "corpus/pack.h"
#include "loader/upload.h"
#include "loader_fixture.h"

#include <tuple>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class LoaderOnGpu : public LoaderTest {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU here";
    LoaderTest::SetUp();
  }
  static LoaderOptions gpu(size_t workers, uint64_t cache_bytes, uint64_t host_cache_bytes = 0) {
    LoaderOptions wanted = options(workers);
    wanted.device = 0, wanted.gpu_cache_bytes = cache_bytes, wanted.host_cache_bytes = host_cache_bytes;
    return wanted;
  }
};

TEST_F(LoaderOnGpu, agrees_with_the_cpu_and_does_not_depend_on_workers_or_cache) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  const uint64_t batches = 4 * plan.batches_per_epoch();
  std::vector<uint64_t> hashes;
  for (const auto& [workers, cache] : {std::pair{1, 0ULL}, {4, 0ULL}, {4, 400'000ULL}, {2, 1ULL << 30}}) {
    Loader loader(corpus, plan, gpu(static_cast<size_t>(workers), cache));
    for (uint64_t i = 0; i < batches; ++i) {
      const BatchLease loaded = loader.next();
      const BatchLease got = copy_to_host(*loaded);
      if (hashes.size() <= i) {
        hashes.push_back(got->hash());
        const BatchLease want = reference(corpus, plan, *loaded, 2);
        ASSERT_TRUE(same_values<int32_t>(*got, *want, "tokens"));
        ASSERT_TRUE(same_values<int32_t>(*got, *want, "text_lengths"));
        ASSERT_TRUE(same_values<int32_t>(*got, *want, "mel_lengths"));
        expect_near(*got, *want, "mel", 1e-3F);
      }
      ASSERT_EQ(got->hash(), hashes[i]) << workers << " workers, cache " << cache << ", batch " << i;
    }
    if (cache > 1'000'000) {
      EXPECT_LT(loader.stats().bytes_read, 30U * 80'000U) << "each clip is read once";
    }
  }
}

TEST_F(LoaderOnGpu, references_agree_with_the_cpu_and_do_not_depend_on_workers_or_cache) {
  const Corpus corpus = open_with_speakers();
  std::vector<Shape> shapes = plan_shapes(corpus.index.lengths(), config.data).shapes;
  for (Shape& shape : shapes) {  // as with balanced speakers, a clip may come again in the same batch
    const std::vector<uint32_t> clips = shape.clips;
    for (int i = 0; i < 2; ++i) shape.clips.insert(shape.clips.end(), clips.begin(), clips.end());
  }
  const BatchPlan plan(shapes, 7);
  const uint64_t batches = 2 * plan.batches_per_epoch();
  std::vector<uint64_t> hashes;
  for (const auto& [workers, cache, host_cache] :
       {std::tuple{1, 0ULL, 0ULL}, {4, 400'000ULL, 0ULL}, {4, 0ULL, 400'000ULL}, {2, 1ULL << 30, 0ULL}}) {
    LoaderOptions wanted = gpu(static_cast<size_t>(workers), cache, host_cache);
    wanted.arrays = conditioned_voice_arrays();
    Loader loader(corpus, plan, wanted);
    for (uint64_t i = 0; i < batches; ++i) {
      const BatchLease loaded = loader.next();
      const BatchLease got = copy_to_host(*loaded);
      if (hashes.size() <= i) {
        hashes.push_back(got->hash());
        const BatchLease want = conditioned_reference(corpus, plan, *loaded);
        for (const char* name : {"tokens", "speaker", "language", "reference_lengths"}) {
          ASSERT_TRUE(same_values<int32_t>(*got, *want, name)) << name;
        }
        expect_near(*got, *want, "mel", 1e-3F);
        expect_near(*got, *want, "reference", 1e-3F);
      }
      ASSERT_EQ(got->hash(), hashes[i]) << workers << " workers, cache " << cache << ", batch " << i;
    }
  }
}

TEST_F(LoaderOnGpu, crops_agree_with_the_cpu_and_do_not_depend_on_workers_or_cache) {
  const Corpus corpus = open();
  const BatchPlan plan(plan_crops(corpus.index, config.data, corpus.mel.frames(crop_samples)).shapes, 7);
  const uint64_t batches = 3 * plan.batches_per_epoch();
  for (const std::vector<std::string>& arrays : {vocoder_arrays(), placed_vocoder_arrays()}) {
    const RowBuilder builder(corpus, plan, arrays, 1);
    std::vector<uint64_t> hashes;
    for (const auto& [workers, cache, host_cache] :
         {std::tuple{1, 0ULL, 0ULL}, {4, 400'000ULL, 0ULL}, {4, 0ULL, 400'000ULL}, {2, 1ULL << 30, 0ULL}}) {
      LoaderOptions wanted = gpu(static_cast<size_t>(workers), cache, host_cache);
      wanted.arrays = arrays;
      Loader loader(corpus, plan, wanted);
      for (uint64_t i = 0; i < batches; ++i) {
        const BatchLease loaded = loader.next();
        const BatchLease got = copy_to_host(*loaded);
        if (hashes.size() <= i) {
          hashes.push_back(got->hash());
          const BatchLease want = make_batch(builder, plan.batch(got->epoch, got->index), 2);
          expect_near(*got, *want, "samples", 1e-5F);
          expect_near(*got, *want, "mel", 1e-3F);
          if (arrays.size() > vocoder_arrays().size()) {
            ASSERT_TRUE(same_values<int32_t>(*got, *want, "crop"));
          }
        }
        ASSERT_EQ(got->hash(), hashes[i]) << workers << " workers, cache " << cache << ", batch " << i;
      }
    }
  }
}

TEST_F(LoaderOnGpu, a_packed_corpus_is_copied_from_the_file_itself_and_gives_the_same) {
  const Corpus corpus = open();
  PackOptions pack;
  pack_corpus(corpus, folder / "packed", pack);
  const Corpus packed = open_corpus(folder / "packed", config, {});
  const BatchPlan plan = plan_of(corpus), packed_plan = plan_of(packed);
  Loader loader(corpus, plan, gpu(2, 0)), packed_loader(packed, packed_plan, gpu(1, 0));
  for (uint64_t i = 0; i < 2 * plan.batches_per_epoch(); ++i) {
    const uint64_t want = copy_to_host(*loader.next())->hash();
    ASSERT_EQ(copy_to_host(*packed_loader.next())->hash(), want) << i;
  }
}

TEST_F(LoaderOnGpu, broken_clips_are_replaced_with_and_without_a_cache) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  write_file_atomically(folder / "wavs" / "clip05.wav", "broken");
  write_clip("clip11", 90000, 22050);
  fs::remove(folder / "wavs" / "clip21.wav");
  std::vector<uint64_t> hashes;
  for (const uint64_t cache : {0ULL, 1ULL << 30}) {
    Loader loader(corpus, plan, gpu(3, cache));
    for (uint64_t i = 0; i < 4 * plan.batches_per_epoch(); ++i) {
      const BatchLease loaded = loader.next();
      const BatchLease got = copy_to_host(*loaded), want = reference(corpus, plan, *loaded, 2);
      ASSERT_TRUE(same_values<int32_t>(*got, *want, "tokens")) << "cache " << cache << ", batch " << i;
      ASSERT_EQ(loaded->replaced.size(), want->replaced.size());
      expect_near(*got, *want, "mel", 1e-3F);
      if (hashes.size() <= i) hashes.push_back(got->hash());
      ASSERT_EQ(got->hash(), hashes[i]);
    }
  }
}

TEST_F(LoaderOnGpu, clips_cached_in_pinned_memory_give_the_same_with_and_without_some_on_the_card) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  write_file_atomically(folder / "wavs" / "clip05.wav", "broken");
  fs::remove(folder / "wavs" / "clip21.wav");
  std::vector<uint64_t> hashes;
  for (const auto& [card, host] :
       {std::pair{0ULL, 0ULL}, {0ULL, 1ULL << 30}, {400'000ULL, 1ULL << 30}, {0ULL, 500'000ULL}}) {
    Loader loader(corpus, plan, gpu(3, card, host));
    for (uint64_t i = 0; i < 6 * plan.batches_per_epoch(); ++i) {
      const BatchLease loaded = loader.next();
      const BatchLease got = copy_to_host(*loaded);
      if (hashes.size() <= i) hashes.push_back(got->hash());
      ASSERT_EQ(got->hash(), hashes[i]) << "card " << card << ", host " << host << ", batch " << i;
      const BatchLease want = reference(corpus, plan, *loaded, 2);
      ASSERT_TRUE(same_values<int32_t>(*got, *want, "tokens"));
      ASSERT_EQ(loaded->replaced.size(), want->replaced.size());
    }
    if (host > 1'000'000) {
      // Substitutes alone are read again: at most two a batch.
      EXPECT_LT(loader.stats().bytes_read, (30 + 2 * 6 * plan.batches_per_epoch()) * 80'000U);
    }
  }
}

TEST_F(LoaderOnGpu, without_overlap_it_gives_the_same) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions in_order = gpu(2, 0);
  in_order.overlap = false;
  Loader loader(corpus, plan, gpu(2, 0)), other(corpus, plan, in_order);
  for (uint64_t i = 0; i < 2 * plan.batches_per_epoch(); ++i) {
    const uint64_t want = copy_to_host(*loader.next())->hash();
    ASSERT_EQ(copy_to_host(*other.next())->hash(), want) << i;
  }
}

TEST_F(LoaderOnGpu, batches_made_in_host_memory_are_uploaded_when_they_are_taken) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  for (const bool native : {true, false}) {
    LoaderOptions wanted = options(2);
    wanted.native = native, wanted.pinned = native;
    const size_t bytes = RowBuilder(corpus, plan, voice_arrays(), 1).max_bytes();
    const std::unique_ptr<BatchSource> source = upload_when_taken(open_loader(corpus, plan, wanted), 0, bytes);
    for (uint64_t i = 0; i < 3 * plan.batches_per_epoch(); ++i) {
      const BatchLease batch = source->next();
      const BatchLease want = reference(corpus, plan, *batch, 1);
      ASSERT_EQ(copy_to_host(*batch)->hash(), want->hash()) << native << " " << i;
    }
  }
}

TEST_F(LoaderOnGpu, ending_it_mid_epoch_returns_at_once) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    for (int trial = 0; trial < 5; ++trial) {
      Loader loader(corpus, plan, gpu(3, 1 << 20));
      if (trial > 0) loader.next();
    }
  });
}

}  // namespace
}  // namespace myxtts
