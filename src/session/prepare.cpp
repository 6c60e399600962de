#include "session/prepare.h"

#include "base/workers.h"

namespace myxtts {

PreparedCorpus prepare_corpus(const std::string& where, const Config& config, bool deep,
                              const SessionListener& listener) {
  PrepareOptions options;
  options.deep = deep, options.check_files = true;
  PreparedCorpus prepared{open_corpus_at(where, config, options, listener), {}};
  AdviceOptions advice;
  advice.threads = static_cast<size_t>(config.data.num_workers.pick(static_cast<int64_t>(available_cores())));
  if (listener.progress) {
    advice.progress = [&](uint64_t done, uint64_t total) { listener.progress("listening", done, total); };
  }
  prepared.advice = advise(prepared.corpus, config.data, advice);
  return prepared;
}

}  // namespace myxtts
