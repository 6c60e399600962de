#include "loader/replace.h"

#include "base/error.h"

namespace myxtts {

uint32_t load_or_replace(const Corpus& corpus, const BatchPlan& plan, size_t shape, uint32_t number,
                         std::vector<BadClip>& bad, const std::function<void(const CorpusClip&)>& load) {
  constexpr uint64_t most_substitutes = 64;
  uint32_t candidate = number;
  for (uint64_t attempt = 0; candidate != no_clip && attempt <= most_substitutes; ++attempt) {
    const CorpusClip clip = corpus.clip(candidate);
    try {
      load(clip);
      for (BadClip& one : bad) one.replaced_by = clip.id;
      return candidate;
    } catch (const Error& error) {
      bad.push_back(make_bad_clip(clip.id, clip.place.path, error));
    }
    if (plan.visits_every_clip()) return no_clip;
    candidate = plan.substitute(shape, number, attempt);
  }
  fail("batch", "none of {} clips in place of {} can be read; the last: {}", bad.size(), bad.front().id,
       bad.back().reason);
}

}  // namespace myxtts
