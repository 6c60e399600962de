#include "loader/batch.h"

#include "audio/resample.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/workers.h"
#include "features/mel.h"
#include "loader/replace.h"

namespace myxtts {
namespace {

void fill_row(const Corpus& corpus, const CorpusClip& clip, size_t row, Batch& batch) {
  const std::vector<uint16_t> tokens = tokens_of(corpus, clip);
  const std::vector<float> samples = read_used_part(corpus, clip);
  std::copy(tokens.begin(), tokens.end(), batch.tokens.begin() + static_cast<std::ptrdiff_t>(row) * batch.text_length);
  batch.text_lengths[row] = static_cast<int32_t>(tokens.size());
  MelCpu mel(corpus.mel);
  mel.compute(samples, std::span(batch.mel).subspan(row * static_cast<size_t>(batch.mel_frames * batch.n_mels),
                                                    clip.length.mel_frames * static_cast<size_t>(batch.n_mels)));
  batch.mel_lengths[row] = static_cast<int32_t>(clip.length.mel_frames);
}

}  // namespace

std::vector<uint16_t> tokens_of(const Corpus& corpus, const CorpusClip& clip) {
  std::vector<uint16_t> tokens = corpus.vocabulary.encode(clip.symbols(), corpus.blank_tokens);
  if (tokens.size() != clip.length.tokens) {
    fail("batch", "{} has {} tokens where the index says {}", clip.id, tokens.size(), uint32_t{clip.length.tokens});
  }
  return tokens;
}

std::vector<float> read_used_part(const Corpus& corpus, const CorpusClip& clip) {
  const Clip audio = read_clip(clip.place, clip.first_sample, clip.samples);
  std::vector<float> samples;
  if (audio.samples.size() == clip.samples && audio.sample_rate == clip.sample_rate) {
    samples = resample(audio.samples, audio.sample_rate, corpus.mel.sample_rate);
  }
  if (corpus.mel.frames(static_cast<int64_t>(samples.size())) != clip.length.mel_frames) {
    fail("batch", "{} has changed since the corpus was prepared", clip.place.name());
  }
  return samples;
}

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
  batch.clips.resize(planned.clips.size(), no_clip);
  std::vector<std::vector<BadClip>> bad(planned.clips.size());
  parallel_for(planned.clips.size(), threads, [&](size_t row) {
    if (planned.clips[row] == no_clip) return;
    batch.clips[row] = load_or_replace(corpus, plan, planned.shape, planned.clips[row], bad[row],
                                       [&](const CorpusClip& clip) { fill_row(corpus, clip, row, batch); });
  });
  for (const std::vector<BadClip>& of_row : bad)
    batch.replaced.insert(batch.replaced.end(), of_row.begin(), of_row.end());
  return batch;
}

}  // namespace myxtts
