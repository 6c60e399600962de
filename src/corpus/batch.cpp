#include "corpus/batch.h"

#include "audio/clip.h"
#include "audio/resample.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/workers.h"
#include "text/utf8.h"

namespace myxtts {

uint64_t Batch::hash() const {
  uint64_t hash = hash_bytes(tokens.data(), tokens.size() * sizeof(tokens[0]));
  hash = hash_bytes(mel.data(), mel.size() * sizeof(mel[0]), hash);
  hash = hash_bytes(text_lengths.data(), text_lengths.size() * sizeof(text_lengths[0]), hash);
  return hash_bytes(mel_lengths.data(), mel_lengths.size() * sizeof(mel_lengths[0]), hash);
}

Batch make_batch(const Corpus& corpus, const Shape& shape, const PlannedBatch& planned, size_t threads) {
  Batch batch;
  batch.rows = static_cast<int64_t>(planned.clips.size());
  batch.text_length = shape.text_length;
  batch.mel_frames = shape.mel_frames;
  batch.n_mels = corpus.mel.n_mels;
  batch.tokens.resize(static_cast<size_t>(batch.rows * batch.text_length));
  batch.mel.resize(static_cast<size_t>(batch.rows * batch.mel_frames * batch.n_mels));
  batch.text_lengths.resize(planned.clips.size());
  batch.mel_lengths.resize(planned.clips.size());
  parallel_for(planned.clips.size(), threads, [&](size_t row) {
    const CorpusClip& clip = corpus.clips[planned.clips[row]];
    const std::vector<char32_t> letters = decode_utf8(clip.text);
    std::copy(letters.begin(), letters.end(),
              batch.tokens.begin() + static_cast<std::ptrdiff_t>(row) * batch.text_length);
    batch.text_lengths[row] = static_cast<int32_t>(letters.size());

    const Clip audio = read_clip(clip.path);
    const Mel mel = MelCpu(corpus.mel).compute(resample(audio.samples, audio.sample_rate, corpus.mel.sample_rate));
    if (mel.frames != clip.mel_frames) {
      fail("batch", "{} has {} mel frames where it had {} before; prepare the corpus again", clip.path.string(),
           mel.frames, clip.mel_frames);
    }
    std::copy(mel.values.begin(), mel.values.end(),
              batch.mel.begin() + static_cast<std::ptrdiff_t>(row) * batch.mel_frames * batch.n_mels);
    batch.mel_lengths[row] = static_cast<int32_t>(mel.frames);
  });
  return batch;
}

}  // namespace myxtts
