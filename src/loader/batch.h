// One batch as a model sees it: tokens, mel and lengths in a static shape, padded with zeros. Empty rows have lengths
// of 0.
#pragma once

#include "corpus/corpus.h"
#include "corpus/quarantine.h"
#include "plan/batch_plan.h"

#include <cstdint>
#include <vector>

namespace myxtts {

struct Batch {
  int64_t rows = 0;
  int64_t text_length = 0;
  int64_t mel_frames = 0;
  int n_mels = 0;
  std::vector<int32_t> tokens;        // [rows, text_length]
  std::vector<float> mel;             // [rows, mel_frames, n_mels]
  std::vector<int32_t> text_lengths;  // [rows]
  std::vector<int32_t> mel_lengths;   // [rows]
  std::vector<uint32_t> clips;        // what is in the rows: numbers in the index, or no_clip
  std::vector<BadClip> replaced;

  // Of tokens, mel and lengths.
  uint64_t hash() const;
};

// A clip's tokens, and the samples of it that are used at the convention's rate. Both throw Error when they are not
// what the index says.
std::vector<uint16_t> tokens_of(const Corpus& corpus, const CorpusClip& clip);
std::vector<float> read_used_part(const Corpus& corpus, const CorpusClip& clip);

// Reads and transforms the batch's clips on up to `threads` threads. A clip that cannot be read is replaced by the one
// that the plan names; throws Error when none of a shape's clips can be read.
Batch make_batch(const Corpus& corpus, const BatchPlan& plan, const PlannedBatch& planned, size_t threads);

}  // namespace myxtts
