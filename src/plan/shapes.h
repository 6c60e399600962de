// The few static shapes that a corpus is fed in: chosen once from its lengths so that little is padding.
#pragma once

#include "corpus/index.h"
#include "settings/config.h"

#include <cstdint>
#include <vector>

namespace myxtts {

struct Shape {
  int64_t text_length = 0;  // tokens, a multiple of 8
  int64_t mel_frames = 0;   // a multiple of 8
  int64_t batch_size = 0;
  std::vector<uint32_t> clips;  // numbers in the index: those that fit no smaller shape
};

struct ShapePlan {
  std::vector<Shape> shapes;      // from short to long, with the clips to train on
  std::vector<Shape> validation;  // the same shapes, with the clips held out
  double padding = 0;             // share of all mel frames fed in training that is padding
};

// At most data.shape_buckets shapes that together pad the fewest frames (exact, by dynamic programming), each with at
// least a batch of clips. With data.batch_frames every shape's batch has about that many frames.
ShapePlan plan_shapes(std::span<const ClipLength> clips, const DataConfig& data);

// Those of a corpus, its speakers balanced as data.balance_speakers asks for.
ShapePlan plan_corpus(const CorpusIndex& index, const DataConfig& data);

// Makes every batch size one that so many ranks divide equally. Those of data.batch_frames become smaller; throws Error
// if data.batch_size would have to.
void share_among_ranks(ShapePlan& plan, const DataConfig& data, int64_t ranks);

// One shape of crops, from clips that are at least as long; a long clip comes once for every four crops' length of it.
ShapePlan plan_crops(const CorpusIndex& index, const DataConfig& data, int64_t crop_frames);

// Clips of speakers with less speech come more than once in an epoch: as often as the speaker with most speech has
// more, to the power of `balance`, at most 50 times. 0: every clip comes once; 1: every speaker is heard equally long.
// Which clip of a speaker comes once more, where the number is not whole, follows from its number alone.
void balance_speakers(std::vector<Shape>& shapes, std::span<const ClipLength> lengths,
                      std::span<const ClipLabels> labels, double balance);

// The same shapes with other clips, to validate on another corpus; clips that fit none go to `unfit`.
std::vector<Shape> fit_to_shapes(std::span<const ClipLength> clips, const std::vector<Shape>& shapes,
                                 std::vector<uint32_t>& unfit);

}  // namespace myxtts
