#include "loader/row_builder.h"

#include "audio/resample.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/random.h"

#include <algorithm>
#include <cstring>

namespace myxtts {
namespace {

using Dims = std::vector<int64_t>;

void put(std::byte* row, int32_t value) { std::memcpy(row, &value, sizeof(value)); }

bool has_row(const Array& array, size_t row) { return static_cast<int64_t>(row) < array.dims.front(); }

const ArraySpec specs[] = {
    {"tokens", DType::int32,
     [](const BatchDims& d) {
       return Dims{d.rows, d.tokens};
     },
     [](const RowValues& values, std::byte* row) {
       std::copy(values.tokens.begin(), values.tokens.end(), reinterpret_cast<int32_t*>(row));
     }},
    {"text_lengths", DType::int32, [](const BatchDims& d) { return Dims{d.rows}; },
     [](const RowValues& values, std::byte* row) { put(row, values.length.tokens); }},
    {"mel_lengths", DType::int32, [](const BatchDims& d) { return Dims{d.rows}; },
     [](const RowValues& values, std::byte* row) { put(row, values.length.mel_frames); }},
    {"mel", DType::float32,
     [](const BatchDims& d) {
       return Dims{d.rows, d.mel_frames, d.n_mels};
     },
     nullptr},
    {"samples", DType::float32,
     [](const BatchDims& d) {
       return Dims{d.rows, crop_samples};
     },
     nullptr},
    {"crop", DType::int32,
     [](const BatchDims& d) {
       return Dims{d.rows, 2};
     },
     [](const RowValues& values, std::byte* row) {
       put(row, values.number), put(row + sizeof(int32_t), values.crop_frame);
     }},
    {"speaker", DType::int32, [](const BatchDims& d) { return Dims{d.rows}; },
     [](const RowValues& values, std::byte* row) { put(row, values.speaker); }},
    {"language", DType::int32, [](const BatchDims& d) { return Dims{d.rows}; },
     [](const RowValues& values, std::byte* row) { put(row, values.language); }},
    {"reference", DType::float32,
     [](const BatchDims& d) {
       return Dims{reference_rows(d.rows), reference_frames, d.n_mels};
     },
     nullptr},
    {"reference_lengths", DType::int32, [](const BatchDims& d) { return Dims{reference_rows(d.rows)}; },
     [](const RowValues& values, std::byte* row) { put(row, values.reference_frames); }},
};

}  // namespace

std::vector<std::string> array_names() {
  std::vector<std::string> names;
  for (const ArraySpec& spec : specs) names.emplace_back(spec.name);
  return names;
}

const ArraySpec& array_spec(const std::string& name) {
  for (const ArraySpec& spec : specs) {
    if (name == spec.name) return spec;
  }
  reject_input("batch", "there is no array '{}'", name, way_out("did you mean {}?", nearest(name, array_names())));
}

const std::vector<std::string>& voice_arrays() {
  static const std::vector<std::string> arrays = {"tokens", "mel", "text_lengths", "mel_lengths"};
  return arrays;
}

const std::vector<std::string>& conditioned_voice_arrays() {
  static const std::vector<std::string> arrays = [] {
    std::vector<std::string> all = voice_arrays();
    all.insert(all.end(), {"speaker", "language", "reference", "reference_lengths"});
    return all;
  }();
  return arrays;
}

const std::vector<std::string>& vocoder_arrays() {
  static const std::vector<std::string> arrays = {"samples", "mel", "mel_lengths"};
  return arrays;
}

const std::vector<std::string>& placed_vocoder_arrays() {
  static const std::vector<std::string> arrays = {"samples", "mel", "mel_lengths", "crop"};
  return arrays;
}

RowBuilder::RowBuilder(const Corpus& corpus, const BatchPlan& plan, const std::vector<std::string>& arrays,
                       uint64_t world_size, uint64_t rank)
    : corpus_(corpus), plan_(plan), world_size_(std::max<uint64_t>(1, world_size)), rank_(rank) {
  for (const std::string& name : arrays) specs_.push_back(&array_spec(name));
  takes_crops_ = std::ranges::find(arrays, "samples") != arrays.end();
  crops_at_frames_ = std::ranges::find(arrays, "crop") != arrays.end();
  if (std::ranges::find(arrays, "reference") != arrays.end()) {
    references_.emplace(corpus.index.lengths(), corpus.index.labels(), uint32_t{reference_frames}, plan.seed());
  }
  for (const Shape& shape : plan.shapes()) {
    const int64_t rows = shape.batch_size / static_cast<int64_t>(world_size_);
    Batch batch;
    batch.arrays = declare_arrays(shape, rows);
    max_host_bytes_ = std::max(max_host_bytes_, host_bytes(batch));
    max_computed_bytes_ = std::max(max_computed_bytes_, packed_bytes(batch) - host_bytes(batch));
    declared_.push_back(std::move(batch.arrays));
  }
}

size_t RowBuilder::host_bytes(const Batch& batch) const {
  size_t bytes = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i]->fill != nullptr) bytes += aligned_bytes(batch.arrays[i].bytes());
  }
  return bytes;
}

std::vector<Array> RowBuilder::declare_arrays(const Shape& shape, int64_t rows) const {
  const BatchDims dims{rows, shape.text_length, shape.mel_frames, corpus_.mel.n_mels};
  std::vector<Array> arrays;
  for (const ArraySpec* spec : specs_) arrays.push_back({spec->name, spec->dtype, spec->dims(dims), -1, nullptr});
  return arrays;
}

void RowBuilder::declare(Batch& batch, size_t shape) const {
  batch.shape = shape;
  batch.arrays = declared_[shape];
}

void RowBuilder::place(Batch& batch, std::byte* host, std::byte* computed, int device) const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    std::byte*& memory = specs_[i]->fill != nullptr ? host : computed;
    batch.arrays[i].data = memory, batch.arrays[i].device = device;
    memory += aligned_bytes(batch.arrays[i].bytes());
  }
}

void RowBuilder::fill(Batch& batch, std::byte* host, size_t row, const RowValues& values) const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i]->fill == nullptr) continue;
    if (has_row(batch.arrays[i], row)) specs_[i]->fill(values, host + row * batch.arrays[i].row_bytes());
    host += aligned_bytes(batch.arrays[i].bytes());
  }
  batch.lengths[row] = values.length;
}

void RowBuilder::clear(Batch& batch, std::byte* host, size_t row) const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i]->fill == nullptr) continue;
    const size_t row_bytes = batch.arrays[i].row_bytes();
    if (has_row(batch.arrays[i], row)) std::memset(host + row * row_bytes, 0, row_bytes);
    host += aligned_bytes(batch.arrays[i].bytes());
  }
  batch.lengths[row] = {};
}

RowValues RowBuilder::read(const CorpusClip& clip) const {
  RowValues values;
  values.tokens = corpus_.vocabulary.encode(clip.symbols(), corpus_.blank_tokens);
  if (values.tokens.size() != clip.length.tokens) {
    fail_as(ErrorCode::changed, "batch", "{} has {} tokens where the index says {}", clip.id, values.tokens.size(),
            uint32_t{clip.length.tokens});
  }
  values.length = {static_cast<int32_t>(values.tokens.size()), static_cast<int32_t>(clip.length.mel_frames),
                   clip.seconds()};
  values.speaker = corpus_.speaker_number(clip.labels), values.language = corpus_.language_number(clip.labels);
  return values;
}

RowValues RowBuilder::build(Batch& batch, std::byte* host, size_t row, uint32_t planned, std::vector<BadClip>& bad,
                            const LoadSamples& load_samples, const LoadSamples& load_reference) const {
  constexpr uint64_t max_substitutes = 64;
  uint32_t candidate = planned;
  for (uint64_t attempt = 0; candidate != no_clip && attempt <= max_substitutes; ++attempt) {
    const CorpusClip clip = corpus_.clip(candidate);
    try {
      RowValues values = read(clip);
      values.number = static_cast<int32_t>(candidate);
      place_crop(batch, row, values);
      load_samples(clip);
      for (BadClip& one : bad) one.replaced_by = clip.id;
      batch.clips[row] = candidate;
      if (has_reference(batch, row)) values.reference_frames = take_reference(batch.epoch, candidate, load_reference);
      fill(batch, host, row, values);
      return values;
    } catch (const Error& error) {
      bad.push_back(make_bad_clip(clip.id, clip.place.path, error));
    }
    candidate = plan_.visits_every_clip() ? no_clip : plan_.substitute(batch.shape, planned, attempt);
  }
  if (!bad.empty() && !plan_.visits_every_clip()) {
    fail("batch", "none of {} clips in place of {} can be read; the last: {}", bad.size(), bad.front().id,
         bad.back().reason);
  }
  batch.clips[row] = no_clip;
  return {};
}

void RowBuilder::place_crop(const Batch& batch, size_t row, RowValues& values) const {
  if (!takes_crops_) return;
  values.length.mel_frames = static_cast<int32_t>(corpus_.mel.frames(crop_samples));
  values.length.seconds = static_cast<double>(crop_samples) / corpus_.mel.sample_rate;
  values.crop_frame = static_cast<int32_t>(crop_frame(batch, row, corpus_.clip(static_cast<size_t>(values.number))));
}

CorpusClip RowBuilder::crop(const Batch& batch, size_t row, const CorpusClip& clip) const {
  const ResampleFilter filter(clip.sample_rate, corpus_.mel.sample_rate);
  auto wanted = static_cast<uint64_t>(crop_samples) * static_cast<uint64_t>(clip.sample_rate) /
                static_cast<uint64_t>(corpus_.mel.sample_rate);
  while (filter.output_length(wanted) < static_cast<uint64_t>(crop_samples)) ++wanted;
  CorpusClip part = clip;
  part.samples = std::min(clip.samples, wanted);
  const uint64_t last = clip.samples - part.samples;
  part.first_sample +=
      crops_at_frames_
          ? std::min(last, static_cast<uint64_t>(crop_frame(batch, row, clip) * corpus_.mel.hop_length) *
                               static_cast<uint64_t>(clip.sample_rate) / static_cast<uint64_t>(corpus_.mel.sample_rate))
          : drawn_for(batch, row) % (last + 1);
  part.length.mel_frames = static_cast<uint32_t>(corpus_.mel.frames(crop_samples));
  return part;
}

int64_t RowBuilder::crop_frame(const Batch& batch, size_t row, const CorpusClip& clip) const {
  const int64_t frames = corpus_.mel.frames(crop_samples);
  const int64_t last = std::max<int64_t>(0, static_cast<int64_t>(clip.length.mel_frames) - frames);
  return static_cast<int64_t>(drawn_for(batch, row) % static_cast<uint64_t>(last + 1));
}

uint64_t RowBuilder::drawn_for(const Batch& batch, size_t row) const {
  return Random::mix(Random::mix(Random::mix(plan_.seed() * 4 + 2) + batch.epoch) + batch.index * 4096 +
                     whole_row(row));
}

bool RowBuilder::has_reference(const Batch& batch, size_t row) const {
  if (!references_ || !has_row(batch["reference"], row)) return false;
  return static_cast<int64_t>(whole_row(row)) < reference_rows(plan_.shapes()[batch.shape].batch_size);
}

uint64_t RowBuilder::reference_samples(int sample_rate) const {
  int64_t samples = reference_frames * corpus_.mel.hop_length;
  while (corpus_.mel.frames(samples) > reference_frames) samples -= corpus_.mel.hop_length;
  return static_cast<uint64_t>(samples) * static_cast<uint64_t>(sample_rate) /
         static_cast<uint64_t>(corpus_.mel.sample_rate);
}

RowBuilder::Reference RowBuilder::reference_of(uint64_t epoch, uint32_t clip) const {
  Reference reference{references_->reference_of(epoch, clip), {}};
  reference.clip = corpus_.clip(reference.number);
  CorpusClip& part = reference.clip;
  const uint64_t wanted = reference_samples(part.sample_rate);
  part.first_sample += references_->first_sample(epoch, clip, part.samples, wanted);
  part.samples = std::min(part.samples, wanted);
  const ResampleFilter filter(part.sample_rate, corpus_.mel.sample_rate);
  const int64_t frames = corpus_.mel.frames(static_cast<int64_t>(filter.output_length(part.samples)));
  part.length.mel_frames = static_cast<uint32_t>(std::min(frames, reference_frames));
  return reference;
}

int32_t RowBuilder::take_reference(uint64_t epoch, uint32_t clip, const LoadSamples& load_reference) const {
  const Reference reference = reference_of(epoch, clip);
  try {
    load_reference(reference.clip);
    return static_cast<int32_t>(reference.clip.length.mel_frames);
  } catch (const Error&) {
    return 0;
  }
}

std::vector<float> read_used_part(const Corpus& corpus, const CorpusClip& clip) {
  const Clip audio = read_clip(clip.place, clip.first_sample, clip.samples);
  std::vector<float> samples;
  if (audio.samples.size() == clip.samples && audio.sample_rate == clip.sample_rate) {
    samples = resample(audio.samples, audio.sample_rate, corpus.mel.sample_rate);
  }
  if (corpus.mel.frames(static_cast<int64_t>(samples.size())) != clip.length.mel_frames) {
    fail_as(ErrorCode::changed, "batch", "{} has changed since the corpus was prepared", clip.place.name());
  }
  return samples;
}

}  // namespace myxtts
