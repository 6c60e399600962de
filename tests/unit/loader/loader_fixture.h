// What the tests of the loader share: the same batch made outside of it, and comparisons.
#pragma once

#include "loader/make_batch.h"
#include "tiny_corpus.h"

#include <algorithm>
#include <span>

namespace myxtts {

class LoaderTest : public TinyCorpus {
 protected:
  // The same batch, made at once outside of the loader.
  static BatchLease reference(const Corpus& corpus, const BatchPlan& plan, const Batch& batch, size_t threads) {
    return make_batch(RowBuilder(corpus, plan, voice_arrays(), 1), plan.batch(batch.epoch, batch.index), threads);
  }
  static BatchLease conditioned_reference(const Corpus& corpus, const BatchPlan& plan, const Batch& batch) {
    return make_batch(RowBuilder(corpus, plan, conditioned_voice_arrays(), 1), plan.batch(batch.epoch, batch.index), 1);
  }

  // The same clips by three speakers in two languages.
  Corpus open_with_speakers() {
    std::string rows;
    for (int i = 0; i < 30; ++i) {
      rows += fmt::format("clip{:02}|speaker {}|{}|text number {}\n", i, i % 3, i % 4 == 0 ? "fa" : "en", i);
    }
    write_file_atomically(folder / "metadata.csv", rows);
    config.data.metadata_format = "id|speaker|language|text", config.data.text_tokens = "characters";
    return open();
  }
};

template <typename T>
bool same_values(const Batch& a, const Batch& b, const char* name) {
  const std::span<T> left = a[name].values<T>(), right = b[name].values<T>();
  return a[name].dims == b[name].dims && std::equal(left.begin(), left.end(), right.begin());
}

inline void expect_near(const Batch& a, const Batch& b, const char* name, float tolerance) {
  const std::span<float> left = a[name].values<float>(), right = b[name].values<float>();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], tolerance);
}

}  // namespace myxtts
