#include "loader/feed.h"

#include "tiny_corpus.h"

namespace myxtts {
namespace {

DeviceView two_cards() {
  return {2, [](int device) { return "Card " + std::to_string(device); }, [](int, int) { return true; }};
}

Mode mode_of(Mode::Kind kind, int data_device, int model_device, bool staged = false) {
  Mode mode;
  mode.kind = kind, mode.data_device = data_device, mode.model_device = model_device, mode.staged = staged;
  return mode;
}

class FeedTest : public TinyCorpus {
 protected:
  static bool has(const std::vector<std::pair<std::string, std::string>>& facts, const std::string& part) {
    for (const auto& [name, text] : facts) {
      if ((name + ": " + text).find(part) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_F(FeedTest, the_lines_name_mode_devices_buffer_delay_shapes_loader_and_what_was_tuned) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  Feed feed = plan_feed(config, corpus, plan, Mode{});
  auto facts = startup_facts(feed, config, plan, two_cards());
  EXPECT_TRUE(has(facts, "mode: CPU"));
  EXPECT_TRUE(has(facts, "buffer: 50 batches in memory"));
  EXPECT_TRUE(has(facts, "delay: none"));
  EXPECT_TRUE(has(
      facts, fmt::format("static shapes: on, 4x{}x{} ", plan.shapes()[0].text_length, plan.shapes()[0].mel_frames)));
  EXPECT_TRUE(has(facts, "loader: native"));
  EXPECT_TRUE(has(facts, "tuned: num_workers"));
  EXPECT_TRUE(has(facts, "tuned: prefetch_buffer_size 8"));

  feed.mode = mode_of(Mode::Kind::multi_gpu, 0, 1);
  feed.start_delay_s = 2, feed.loader.device = 0, feed.loader.gpu_cache_bytes = 1'500'000'000;
  facts = startup_facts(feed, config, plan, two_cards());
  EXPECT_TRUE(has(facts, "mode: Multi-GPU, data on cuda:0 (Card 0), model on cuda:1 (Card 1), batches cross by peer"));
  EXPECT_TRUE(has(facts, "buffer: 50 batches in GPU memory, and 4 on the model's GPU"));
  EXPECT_TRUE(has(facts, "delay: the model starts after 2.0 s"));
  EXPECT_TRUE(has(facts, "cache: clips up to 1.50 GB in GPU memory"));
  feed.mode.staged = true;
  EXPECT_TRUE(has(startup_facts(feed, config, plan, two_cards()), "through pinned host memory"));
  feed.mode = mode_of(Mode::Kind::single_gpu, 1, 1);
  EXPECT_TRUE(has(startup_facts(feed, config, plan, two_cards()), "mode: Single-GPU buffered on cuda:1 (Card 1)"));
}

TEST_F(FeedTest, what_is_set_by_hand_is_respected_and_not_called_tuned) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  config.data.num_workers = {3, 3}, config.data.prefetch_buffer_size = {5, 5}, config.data.pipeline_buffer_size = 20;
  const Feed feed = plan_feed(config, corpus, plan, Mode{});
  EXPECT_EQ(feed.loader.workers, 3U);
  EXPECT_EQ(feed.loader.min_workers, 3U);
  EXPECT_EQ(feed.loader.reading_batches, 5U);
  EXPECT_EQ(feed.loader.min_reading_batches, 5U);
  EXPECT_EQ(feed.loader.max_reading_batches, 5U);
  EXPECT_EQ(feed.loader.ring_batches, 20U);
  EXPECT_TRUE(feed.tuned.empty());
}

TEST_F(FeedTest, without_tuning_the_machine_is_not_asked_and_nothing_changes) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  config.data.auto_tune_performance = false;
  const Feed feed = plan_feed(config, corpus, plan, Mode{});
  EXPECT_FALSE(feed.loader.tune);
  EXPECT_EQ(feed.loader.workers, 4U);
  EXPECT_EQ(feed.loader.reading_batches, 8U);
  EXPECT_TRUE(feed.tuned.empty());
  // Also on a GPU: it would otherwise be asked what is free.
  const Feed on_gpu = plan_feed(config, corpus, plan, mode_of(Mode::Kind::single_gpu, 0, 0));
  EXPECT_EQ(on_gpu.loader.gpu_cache_bytes + on_gpu.loader.host_cache_bytes, 0U);
}

TEST_F(FeedTest, batches_are_made_where_the_switches_say) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  config.data.auto_tune_performance = false;
  const Mode mode = mode_of(Mode::Kind::single_gpu, 1, 1);
  EXPECT_EQ(plan_feed(config, corpus, plan, mode).loader.device, 1);
  config.data.optimize_cpu_gpu_overlap = false;
  EXPECT_FALSE(plan_feed(config, corpus, plan, mode).loader.overlap);
  config.data.prefetch_to_gpu = false;
  const Feed host = plan_feed(config, corpus, plan, mode);
  EXPECT_EQ(host.loader.device, -1);
  EXPECT_TRUE(host.loader.pinned);
  EXPECT_TRUE(has(startup_facts(host, config, plan, two_cards()), "buffer: 50 batches in pinned memory"));
  config.data.prefetch_to_gpu = true, config.data.use_native_loading = false;
  const Feed slow = plan_feed(config, corpus, plan, mode);
  EXPECT_EQ(slow.loader.device, -1);
  EXPECT_TRUE(has(startup_facts(slow, config, plan, two_cards()), "loader: slow path"));
}

TEST_F(FeedTest, caches_take_a_share_of_what_is_free_and_never_more_than_the_corpus) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  uint64_t all = 0;
  for (size_t clip = 0; clip < corpus.index.size(); ++clip) all += (corpus.index.loaded_bytes(clip) + 255) / 256 * 256;
  Feed feed;
  feed.mode = mode_of(Mode::Kind::single_gpu, 0, 0), feed.loader.ring_batches = 10;
  const uint64_t ring = 10 * RowBuilder(corpus, plan, voice_arrays(), 1).max_bytes();
  size_caches(feed, corpus, plan, {uint64_t{1} << 34, uint64_t{1} << 34});
  EXPECT_EQ(feed.loader.gpu_cache_bytes, all);
  EXPECT_EQ(feed.loader.host_cache_bytes, 0U);
  size_caches(feed, corpus, plan, {ring + all, all});
  EXPECT_EQ(feed.loader.gpu_cache_bytes, all / 4);
  EXPECT_EQ(feed.loader.host_cache_bytes, all / 4);
  feed.mode = mode_of(Mode::Kind::multi_gpu, 0, 1);
  size_caches(feed, corpus, plan, {ring + all, 8 * all});
  EXPECT_EQ(feed.loader.gpu_cache_bytes, all / 4 * 3);
  EXPECT_EQ(feed.loader.host_cache_bytes, all - all / 4 * 3);
  size_caches(feed, corpus, plan, {ring / 2, 0});
  EXPECT_EQ(feed.loader.gpu_cache_bytes + feed.loader.host_cache_bytes, 0U);
}

TEST_F(FeedTest, on_a_gpu_every_mode_opens_and_feeds) {
  if (device_count() == 0) GTEST_SKIP() << "no GPU here";
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  config.data.model_start_delay = 0;
  std::vector<uint64_t> want;
  for (const std::string kind : {"single", "0/0", "0/0 staged", "no prefetch", "slow"}) {
    Config one = config;
    if (kind.starts_with("0/0")) one.data.data_gpu = one.data.model_gpu = 0;
    one.data.staged_peer_copy = kind == "0/0 staged";
    one.data.prefetch_to_gpu = kind != "no prefetch", one.data.use_native_loading = kind != "slow";
    const Feed feed = plan_feed(one, corpus, plan, choose_mode(one, real_devices()));
    const std::unique_ptr<BatchSource> source = open_feed(feed, corpus, plan);
    std::vector<uint64_t> hashes;
    for (int i = 0; i < 12; ++i) hashes.push_back(copy_to_host(*source->next())->hash());
    if (kind == "single") want = hashes;
    if (kind == "no prefetch") want = hashes;  // made on the CPU from here on
    EXPECT_EQ(hashes, want) << kind;
  }
}

}  // namespace
}  // namespace myxtts
