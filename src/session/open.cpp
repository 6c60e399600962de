#include "session/open.h"

#include "base/error.h"
#include "base/files.h"

#include <algorithm>
#include <bit>
#include <set>

namespace myxtts {

Mode choose_devices(const Config& config, const SessionListener& listener) {
  Mode mode = choose_mode(config, real_devices());
  for (const std::string& warning : mode.warnings) listener.alert(warning);
  return mode;
}

Corpus open_corpus_at(const std::string& where, const Config& config, PrepareOptions options,
                      const SessionListener& listener) {
  std::set<char32_t> symbols;
  if (!config.data.vocabulary.empty()) {
    constexpr uint64_t max_bytes = 1 << 22;
    symbols =
        Vocabulary::from_json(read_text_file(config.data.vocabulary, max_bytes), config.data.vocabulary).symbols();
    options.symbols = &symbols;
  }
  options.validation = config.data.val_data.empty();
  options.texts = config.training.target != "vocoder" || !config.training.teacher.empty();
  options.say = listener.say;
  if (listener.progress) {
    options.progress = [&](uint64_t done, uint64_t total) { listener.progress("checking", done, total); };
  }
  return open_corpus(where, config, options);
}

PlannedCorpus open_planned_corpus(const char* command, const Config& config, CorpusPart part,
                                  const SessionListener& listener, bool crops, int64_t ranks) {
  const DataConfig& data = config.data;
  if (data.train_data.empty()) reject_input(command, "no corpus is named", way_out("give --train-data DIR"));
  Corpus corpus = open_corpus_at(data.train_data, config, {}, listener);
  if (corpus.index.size() == 0) {
    const std::vector<RejectedClip>& rejected = corpus.index.summary().rejected;
    const std::string first =
        rejected.empty() ? "" : fmt::format(": {}: {}", rejected.front().id, rejected.front().reason);
    reject_input(command, "{} has no clip that can be used{}", data.train_data, first, way_out("see `prepare`"));
  }
  ShapePlan shapes =
      crops ? plan_crops(corpus.index, data, corpus.mel.frames(crop_samples)) : plan_corpus(corpus.index, data);
  if (ranks > 1) share_among_ranks(shapes, data, ranks);
  const bool held_out = part == CorpusPart::held_out;
  BatchPlan plan(held_out ? shapes.validation : shapes.shapes, static_cast<uint64_t>(config.training.seed),
                 held_out ? BatchPlan::Visit::every_clip : BatchPlan::Visit::shuffled);
  if (plan.batches_per_epoch() == 0 && held_out) {
    reject_input(command, "{} has no clips held out for validation{}", data.train_data,
                 data.val_data.empty() ? "" : "; data.val_data is set, show it with --train-data");
  }
  if (plan.batches_per_epoch() == 0) {
    const uint64_t clips = corpus.index.size();
    const uint64_t fits = std::bit_floor(std::max<uint64_t>(clips / 2, 1));  // some are held out
    reject_input(command, "{} has {} clips, too few for a batch of {}", data.train_data, clips,
                 plan.shapes().front().batch_size, way_out("give --batch-size {}", fits));
  }
  return {std::move(corpus), std::move(shapes), std::move(plan)};
}

std::unique_ptr<BatchSource> open_batches(Feed feed, const Config& config, const PlannedCorpus& planned,
                                          const SessionListener& listener) {
  for (const auto& [name, text] : startup_facts(feed, config, planned.plan)) {
    listener.tell(fmt::format("{}: {}", name, text));
  }
  feed.loader.say = [say = listener.say](const std::string& sentence) {
    if (say) say("tuned: " + sentence);
  };
  return open_feed(feed, planned.corpus, planned.plan);
}

}  // namespace myxtts
