#include "corpus/batch.h"

#include "audio/resample.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/workers.h"
#include "features/mel.h"

namespace myxtts {
namespace {

constexpr uint64_t most_substitutes = 64;

// One row: a clip's tokens and mel, or the substitute's.
class RowMaker {
 public:
  RowMaker(const Corpus& corpus, const BatchPlan& plan, const PlannedBatch& planned, Batch& batch)
      : corpus_(corpus), plan_(plan), planned_(planned), batch_(batch) {}

  struct Made {
    std::string id;
    std::vector<BadClip> replaced;
  };

  Made make(size_t row) const {
    Made made;
    uint32_t number = planned_.clips[row];
    for (uint64_t attempt = 0; number != no_clip; ++attempt) {
      const CorpusClip clip = corpus_.clip(number);
      try {
        fill(row, clip);
        made.id = clip.id;
        for (BadClip& bad : made.replaced) bad.replaced_by = clip.id;
        return made;
      } catch (const Error& error) {
        made.replaced.push_back(make_bad_clip(clip.id, clip.place.path, error.what()));
        if (attempt == most_substitutes) break;
      }
      number = plan_.substitute(planned_.shape, planned_.clips[row], attempt);
    }
    if (made.replaced.empty()) return made;  // an empty row
    const BadClip& last = made.replaced.back();
    fail("batch", "none of {} clips in place of {} can be read; the last: {}", made.replaced.size(),
         made.replaced.front().id, last.reason);
  }

 private:
  void fill(size_t row, const CorpusClip& clip) const {
    const Clip audio = read_clip(clip.place, clip.first_sample, clip.samples);
    if (audio.samples.size() != clip.samples || audio.sample_rate != clip.sample_rate) {
      fail("batch", "{} has changed since the corpus was prepared", clip.place.name());
    }
    const Mel mel = MelCpu(corpus_.mel).compute(resample(audio.samples, audio.sample_rate, corpus_.mel.sample_rate));
    if (mel.frames != clip.length.mel_frames) {
      fail("batch", "{} has {} mel frames where it had {} before", clip.place.name(), mel.frames,
           clip.length.mel_frames);
    }
    const std::vector<uint16_t> tokens = corpus_.vocabulary.encode(clip.symbols(), corpus_.blank_tokens);
    std::copy(tokens.begin(), tokens.end(),
              batch_.tokens.begin() + static_cast<std::ptrdiff_t>(row) * batch_.text_length);
    batch_.text_lengths[row] = static_cast<int32_t>(tokens.size());
    std::copy(mel.values.begin(), mel.values.end(),
              batch_.mel.begin() + static_cast<std::ptrdiff_t>(row) * batch_.mel_frames * batch_.n_mels);
    batch_.mel_lengths[row] = static_cast<int32_t>(mel.frames);
  }

  const Corpus& corpus_;
  const BatchPlan& plan_;
  const PlannedBatch& planned_;
  Batch& batch_;
};

}  // namespace

uint64_t Batch::hash() const {
  uint64_t hash = hash_bytes(tokens.data(), tokens.size() * sizeof(tokens[0]));
  hash = hash_bytes(mel.data(), mel.size() * sizeof(mel[0]), hash);
  hash = hash_bytes(text_lengths.data(), text_lengths.size() * sizeof(text_lengths[0]), hash);
  return hash_bytes(mel_lengths.data(), mel_lengths.size() * sizeof(mel_lengths[0]), hash);
}

Batch make_batch(const Corpus& corpus, const BatchPlan& plan, const PlannedBatch& planned, size_t threads) {
  const Shape& shape = plan.shapes()[planned.shape];
  Batch batch;
  batch.rows = static_cast<int64_t>(planned.clips.size());
  batch.text_length = shape.text_length;
  batch.mel_frames = shape.mel_frames;
  batch.n_mels = corpus.mel.n_mels;
  batch.tokens.resize(static_cast<size_t>(batch.rows * batch.text_length));
  batch.mel.resize(static_cast<size_t>(batch.rows * batch.mel_frames * batch.n_mels));
  batch.text_lengths.resize(planned.clips.size());
  batch.mel_lengths.resize(planned.clips.size());
  std::vector<RowMaker::Made> made(planned.clips.size());
  const RowMaker maker(corpus, plan, planned, batch);
  parallel_for(planned.clips.size(), threads, [&](size_t row) { made[row] = maker.make(row); });
  for (RowMaker::Made& one : made) {
    if (!one.id.empty()) batch.ids.push_back(std::move(one.id));
    batch.replaced.insert(batch.replaced.end(), one.replaced.begin(), one.replaced.end());
  }
  return batch;
}

}  // namespace myxtts
