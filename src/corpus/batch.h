// One batch as a model sees it: tokens, mel and lengths in a static shape, padded with zeros.
#pragma once

#include "corpus/plan.h"
#include "features/mel.h"

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

  // Of tokens, mel and lengths.
  uint64_t hash() const;
};

// Reads and transforms the batch's clips on up to `threads` threads; throws what a clip throws, with its name.
Batch make_batch(const Corpus& corpus, const Shape& shape, const PlannedBatch& planned, size_t threads);

}  // namespace myxtts
