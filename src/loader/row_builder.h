// Which arrays a batch can hold, how they lie in memory, and how a row of each is filled from its clip: once, for every
// backend. An array of a new kind is a row of the table in row_builder.cpp; what is trained names the arrays it needs.
//
// Arrays of integers and lengths are filled on the host. Those without a `fill` are computed from the clip's samples by
// the backend, on its device.
#pragma once

#include "corpus/corpus.h"
#include "loader/batch.h"
#include "plan/batch_plan.h"
#include "plan/reference_plan.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

// The sizes that an array's dimensions come from.
struct BatchDims {
  int64_t rows = 0, tokens = 0, mel_frames = 0, n_mels = 0;
};

// What is known of a clip before its samples are read.
struct RowValues {
  std::vector<uint16_t> tokens;
  RowLength length;
  int32_t speaker = 0, language = 0;   // in the voice; -1: not known to it
  int32_t reference_frames = 0;        // 0: there is no reference
  int32_t number = 0, crop_frame = 0;  // the clip's in the index; where its crop begins
};

struct ArraySpec {
  const char* name;
  DType dtype;
  std::vector<int64_t> (*dims)(const BatchDims&);
  void (*fill)(const RowValues& values, std::byte* row);  // into zeros; null: computed from samples
};

// By name; throws Error with the nearest name.
const ArraySpec& array_spec(const std::string& name);
std::vector<std::string> array_names();

// What a voice is trained on. The order is that of the content hash.
const std::vector<std::string>& voice_arrays();
// A voice that knows speakers, languages and references.
const std::vector<std::string>& conditioned_voice_arrays();
// A vocoder: crops, and the mel of each; a row without a clip has no length.
const std::vector<std::string>& vocoder_arrays();
// The same with `crop`, the number of the clip and the frame that the crop begins with; crops begin at frames then.
const std::vector<std::string>& placed_vocoder_arrays();

constexpr size_t aligned_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Immutable; any thread.
class RowBuilder {
 public:
  // The references are kept. Batches have the rows of one rank: its row i is the whole batch's rank + i * world_size.
  RowBuilder(const Corpus& corpus, const BatchPlan& plan, const std::vector<std::string>& arrays, uint64_t world_size,
             uint64_t rank = 0);

  const Corpus& corpus() const { return corpus_; }
  const BatchPlan& plan() const { return plan_; }

  // Declares the arrays of a batch of this shape, with as many rows as a rank has; their memory is given by place().
  void declare(Batch& batch, size_t shape) const;
  // Host-filled arrays lie in `host`, one after another, the computed ones in `computed`.
  void place(Batch& batch, std::byte* host, std::byte* computed, int device) const;

  // Of the batch's host-filled arrays, and of the plan's largest.
  size_t host_bytes(const Batch& batch) const;
  size_t max_host_bytes() const { return max_host_bytes_; }
  size_t max_computed_bytes() const { return max_computed_bytes_; }
  size_t max_bytes() const { return max_host_bytes_ + max_computed_bytes_; }

  // Fills the row's host arrays, which begin at `host` and are zero, from what is known of its clip.
  void fill(Batch& batch, std::byte* host, size_t row, const RowValues& values) const;
  // Makes the row an empty one: all zeros.
  void clear(Batch& batch, std::byte* host, size_t row) const;

  // Fills the row, which is clear, from its planned clip or, while that fails, from the substitutes that the plan
  // names: `load_samples` is called with each and throws Error if its samples cannot be used. Then `load_reference` is
  // called with the clip's reference, if the row has one. A plan that visits every clip has no substitutes: the row
  // stays empty. Clips that failed are added to `bad`. Returns what the row holds.
  using LoadSamples = std::function<void(const CorpusClip&)>;
  RowValues build(Batch& batch, std::byte* host, size_t row, uint32_t planned, std::vector<BadClip>& bad,
                  const LoadSamples& load_samples, const LoadSamples& load_reference) const;

  bool takes_crops() const { return takes_crops_; }
  // The part of a clip that a row holds where batches have samples, as a clip of its own: a pure function of seed,
  // epoch, batch and row.
  CorpusClip crop(const Batch& batch, size_t row, const CorpusClip& clip) const;
  int64_t crop_frame(const Batch& batch, size_t row, const CorpusClip& clip) const;
  // Says of a clip's values which crop of it the row holds; nothing where rows hold whole clips.
  void place_crop(const Batch& batch, size_t row, RowValues& values) const;

  bool has_references() const { return references_.has_value(); }
  bool has_reference(const Batch& batch, size_t row) const;
  // The stretch that shows how the clip's speaker sounds, as a clip of its own, and its number in the index.
  struct Reference {
    uint32_t number = 0;
    CorpusClip clip;
  };
  Reference reference_of(uint64_t epoch, uint32_t clip) const;
  uint32_t reference_number(uint64_t epoch, uint32_t clip) const { return references_->reference_of(epoch, clip); }
  // Loads it and returns its frames; 0 if it cannot be read. A row without a reference is trained on all the same, and
  // the clip is reported when its own turn comes.
  int32_t take_reference(uint64_t epoch, uint32_t clip, const LoadSamples& load_reference) const;
  uint64_t reference_samples(int sample_rate) const;  // of the longest stretch, at a clip's own rate

 private:
  uint64_t whole_row(size_t row) const { return rank_ + row * world_size_; }
  uint64_t drawn_for(const Batch& batch, size_t row) const;
  std::vector<Array> declare_arrays(const Shape& shape, int64_t rows) const;
  RowValues read(const CorpusClip& clip) const;

  const Corpus& corpus_;
  const BatchPlan& plan_;
  uint64_t world_size_, rank_;
  std::vector<const ArraySpec*> specs_;
  std::vector<std::vector<Array>> declared_;  // per shape, so that a batch is declared without allocating
  size_t max_host_bytes_ = 0, max_computed_bytes_ = 0;
  std::optional<ReferencePlan> references_;
  bool takes_crops_ = false, crops_at_frames_ = false;
};

// Samples of the clip that are used, at the mel's rate. Throws Error if they are not what the index holds.
std::vector<float> read_used_part(const Corpus& corpus, const CorpusClip& clip);

}  // namespace myxtts
