#include "cli/corpus_flags.h"

#include "base/files.h"
#include "text/utf8.h"

namespace myxtts {

Mode choose_mode_loudly(const Config& config, const Console& console) {
  Mode mode = choose_mode(config, real_devices());
  for (const std::string& warning : mode.warnings) console.warn("{}", warning);
  return mode;
}

std::unique_ptr<BatchSource> open_feed_loudly(Feed feed, const Config& config, const Corpus& corpus,
                                              const BatchPlan& plan, const Console& console) {
  for (const auto& [name, text] : startup_facts(feed, config, plan)) console.info("{}: {}", name, text);
  feed.loader.say = [&console](const std::string& sentence) { console.info("tuned: {}", sentence); };
  return open_feed(feed, corpus, plan);
}

Corpus open_corpus_loudly(const std::string& where, const Config& config, PrepareOptions options,
                          const Console& console) {
  std::set<char32_t> symbols;
  if (!config.data.vocabulary.empty()) {
    constexpr uint64_t longest = 1 << 22;
    symbols = Vocabulary::from_json(read_text_file(config.data.vocabulary, longest), config.data.vocabulary).symbols();
    options.symbols = &symbols;
  }
  options.validation = config.data.val_data.empty();
  options.say = [&](const std::string& sentence) { console.info("{}", sentence); };
  std::unique_ptr<ProgressBar> bar;
  options.progress = [&](uint64_t done, uint64_t total) {
    if (!bar) bar = std::make_unique<ProgressBar>(console, "checking", total);
    bar->update(done);
  };
  return open_corpus(where, config, options);
}

}  // namespace myxtts
