#include "plan/reference_plan.h"

#include "base/random.h"

#include <algorithm>

namespace myxtts {

ReferencePlan::ReferencePlan(std::span<const ClipLength> lengths, std::span<const ClipLabels> labels,
                             uint32_t enough_frames, uint64_t seed)
    : enough_frames_(enough_frames), seed_(seed) {
  uint32_t speakers = 0;
  for (const ClipLabels& label : labels) speakers = std::max(speakers, label.speaker + 1);
  first_.assign(speakers + 1, 0);
  for (size_t i = 0; i < labels.size(); ++i) {
    frames_.push_back(lengths[i].mel_frames), speakers_.push_back(labels[i].speaker);
    if (lengths[i].held_out == 0) ++first_[labels[i].speaker + 1];
  }
  for (uint32_t speaker = 0; speaker < speakers; ++speaker) first_[speaker + 1] += first_[speaker];
  clips_.resize(first_.back());
  std::vector<uint32_t> next(first_.begin(), first_.end());
  for (size_t i = 0; i < labels.size(); ++i) {
    if (lengths[i].held_out == 0) clips_[next[labels[i].speaker]++] = static_cast<uint32_t>(i);
  }
}

uint64_t ReferencePlan::draw(uint64_t epoch, uint32_t clip, uint64_t what) const {
  return Random::mix(Random::mix(Random::mix(seed_ * 4 + 3) + epoch) + clip * uint64_t{16} + what);
}

uint32_t ReferencePlan::reference_of(uint64_t epoch, uint32_t clip) const {
  constexpr uint64_t tries = 4;
  const uint32_t first = first_[speakers_[clip]], count = first_[speakers_[clip] + 1] - first;
  uint32_t best = clip;
  for (uint64_t attempt = 0; attempt < tries && count > 0; ++attempt) {
    uint64_t at = draw(epoch, clip, attempt) % count;
    if (clips_[first + at] == clip) at = (at + 1) % count;
    const uint32_t candidate = clips_[first + at];
    if (candidate == clip) break;
    if (best == clip || frames_[candidate] > frames_[best]) best = candidate;
    if (frames_[best] >= enough_frames_) break;
  }
  return best;
}

uint64_t ReferencePlan::first_sample(uint64_t epoch, uint32_t clip, uint64_t samples, uint64_t wanted) const {
  return samples <= wanted ? 0 : draw(epoch, clip, 15) % (samples - wanted + 1);
}

}  // namespace myxtts
