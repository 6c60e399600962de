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
