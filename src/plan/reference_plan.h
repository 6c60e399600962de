// Which clip shows how another clip's speaker sounds, and which stretch of it: a pure function of (seed, epoch, clip),
// in constant time. Immutable; any thread.
#pragma once

#include "corpus/index.h"

#include <cstdint>
#include <span>
#include <vector>

namespace myxtts {

// So many rows of a batch, the first ones, are trained with a reference; the others with what is learnt of the speaker.
constexpr int64_t reference_rows(int64_t rows) { return (rows + 1) / 2; }

class ReferencePlan {
 public:
  // A clip of `enough_frames` fills a reference.
  ReferencePlan(std::span<const ClipLength> lengths, std::span<const ClipLabels> labels, uint32_t enough_frames,
                uint64_t seed);

  // Another clip of the same speaker that is trained on, another one in every epoch; the clip itself if there is none.
  // One that fills a reference is preferred.
  uint32_t reference_of(uint64_t epoch, uint32_t clip) const;

  // Where the stretch of `wanted` of a reference's `samples` begins.
  uint64_t first_sample(uint64_t epoch, uint32_t clip, uint64_t samples, uint64_t wanted) const;

 private:
  uint64_t draw(uint64_t epoch, uint32_t clip, uint64_t what) const;

  std::vector<uint32_t> frames_;    // per clip
  std::vector<uint32_t> speakers_;  // per clip
  std::vector<uint32_t> first_;     // per speaker, in clips_; with the end last
  std::vector<uint32_t> clips_;     // by speaker, those that are trained on
  uint32_t enough_frames_;
  uint64_t seed_;
};

}  // namespace myxtts
