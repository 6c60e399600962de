#include "train/voice_trainable.h"

#include "artifacts/png.h"
#include "audio/wav.h"
#include "base/error.h"
#include "base/workers.h"
#include "features/cpu/griffin_lim.h"
#include "loader/make_batch.h"
#include "model/cpu_products.h"
#include "plan/reference_plan.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

VoiceBatch voice_batch(const TensorMap& batch) {
  VoiceBatch tensors{batch["tokens"], batch["text_lengths"], batch["mel_lengths"], batch["mel"]};
  if (batch.contains("speaker")) {
    tensors.speaker = batch["speaker"], tensors.language = batch["language"];
    tensors.reference = batch["reference"], tensors.reference_lengths = batch["reference_lengths"];
  }
  if (batch.contains("whole_frames")) {
    tensors.whole_tokens = batch["whole_tokens"], tensors.whole_frames = batch["whole_frames"];
  }
  return tensors;
}

Picture heat_map(std::string name, std::string title, const at::Tensor& matrix) {
  const at::Tensor plain = matrix.to(at::kCPU, at::kFloat).contiguous();
  const int rows = static_cast<int>(plain.size(0)), columns = static_cast<int>(plain.size(1));
  HeatmapOptions options;
  options.scale = 2;
  return {std::move(name), std::move(title),
          make_png_heatmap({plain.const_data_ptr<float>(), static_cast<size_t>(plain.numel())}, rows, columns, options),
          columns * options.scale, rows * options.scale};
}

}  // namespace

VoiceTrainable::VoiceTrainable(VoiceDescription description, const OptimizerSettings& optimizer, bool fused)
    : description_(std::move(description)),
      optimizer_(optimizer),
      dropout_(description_.config.training.dropout),
      condition_dropout_(description_.config.training.condition_dropout),
      voice_(description_.spec(), fused) {}

VoiceTrainable::VoiceTrainable(const VoiceSpec& spec, const OptimizerSettings& optimizer, bool fused, double dropout)
    : optimizer_(optimizer), dropout_(dropout), voice_(spec, fused) {}

std::vector<std::string> VoiceTrainable::arrays() const {
  return voice_.spec().conditioned() ? conditioned_voice_arrays() : voice_arrays();
}

std::vector<ParameterGroup> VoiceTrainable::groups() const {
  std::vector<std::string> losses = {"loss"};
  for (const std::string& name : Voice::loss_names()) losses.push_back("loss_" + name);
  return {{"voice", &voice_.layout(), optimizer_, 1, losses}};
}

TensorMap VoiceTrainable::example(const StepSignature& shape, at::Device device) const {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device), ints = floats.dtype(at::kInt);
  TensorMap batch = {{"tokens", at::full({shape.rows, shape.text_length}, Vocabulary::first_symbol, ints)},
                     {"mel", at::zeros({shape.rows, shape.mel_frames, voice_.spec().n_mels}, floats)},
                     {"text_lengths", at::full({shape.rows}, std::min(shape.text_length, shape.mel_frames), ints)},
                     {"mel_lengths", at::full({shape.rows}, shape.mel_frames, ints)}};
  if (voice_.spec().conditioned()) {
    batch.add("speaker", at::zeros({shape.rows}, ints));
    batch.add("language", at::zeros({shape.rows}, ints));
    const int64_t heard = reference_rows(shape.rows);
    batch.add("reference", at::zeros({heard, reference_frames, voice_.spec().n_mels}, floats));
    batch.add("reference_lengths", at::full({heard}, reference_frames, ints));
  }
  return batch;
}

TensorMap VoiceTrainable::make_noise(const TensorMap& batch) const {
  const at::Tensor& mel = batch["mel"];
  // One draw for all that is uniform: the flow's time, and with conditions which of them are kept.
  return {{"uniform", at::empty({voice_.spec().conditioned() ? 2 : 1, mel.size(0)}, mel.options())},
          {"noise", at::empty_like(mel)},
          {"dropout", at::zeros({}, mel.options().dtype(at::kLong))}};
}

void VoiceTrainable::draw_noise(TensorMap& noise, at::Generator generator, const RowPlace& rows) const {
  draw_rows(noise["uniform"], 1, rows, [&](at::Tensor& all) { all.uniform_(0, 1, generator); });
  draw_rows(noise["noise"], 0, rows, [&](at::Tensor& all) { all.normal_(0, 1, generator); });
  noise["dropout"].random_(generator);
}

Trainable::Counts VoiceTrainable::counts(std::span<const RowLength> rows) const {
  int64_t tokens = 0, frames = 0;
  for (const RowLength& row : rows) tokens += row.tokens, frames += row.mel_frames;
  return {{"whole_tokens", tokens}, {"whole_frames", frames}};
}

// Validation runs without gradients, without dropout and with every condition.
FlowNoise VoiceTrainable::flow_noise(const TensorMap& noise, const RowPlace& rows) const {
  const bool training = at::GradMode::is_enabled();
  FlowNoise flow{noise["uniform"][0], noise["noise"], {noise["dropout"], training ? dropout_ : 0, rows}};
  if (!voice_.spec().conditioned()) return flow;
  flow.kept = noise["uniform"][1];
  flow.condition_dropout = training ? condition_dropout_ : 0;
  return flow;
}

std::vector<at::Tensor> VoiceTrainable::losses(size_t, std::span<const Weights> weights, const TensorMap& batch,
                                               const TensorMap& noise, const Inspect& inspect) const {
  const VoiceLosses losses = voice_.losses(weights.front(), voice_batch(batch), flow_noise(noise, batch.rows), inspect);
  std::vector<at::Tensor> all = {losses.total};
  all.insert(all.end(), losses.terms.begin(), losses.terms.end());
  return all;
}

// Every so manieth row: so the rows with a reference, which come first, are as many in each part.
std::vector<Trainable::Part> VoiceTrainable::divided(const TensorMap& batch, const TensorMap& noise,
                                                     int64_t most) const {
  const int64_t rows = batch["mel"].size(0);
  const int64_t parts = std::min(most, batch.contains("reference") ? batch["reference"].size(0) : rows);
  TensorMap counted;
  if (!batch.contains("whole_frames")) {  // not shared among ranks
    counted = {{"whole_tokens", batch["text_lengths"].sum()}, {"whole_frames", batch["mel_lengths"].sum()}};
  }
  std::vector<Part> divided;
  for (int64_t part = 0; part < parts; ++part) {
    const auto rows_of = [&](const at::Tensor& tensor, int64_t dimension) {
      return tensor.slice(dimension, part, tensor.size(dimension), parts).contiguous();
    };
    Part& added = divided.emplace_back();
    for (const auto& [name, tensor] : batch) added.batch.add(name, tensor.dim() == 0 ? tensor : rows_of(tensor, 0));
    for (const auto& [name, tensor] : counted) added.batch.add(name, tensor);
    added.batch.rows = {batch.rows.first + part * batch.rows.stride, parts * batch.rows.stride};
    added.noise = {{"uniform", rows_of(noise["uniform"], 1)},
                   {"noise", rows_of(noise["noise"], 0)},
                   {"dropout", noise["dropout"]}};
  }
  return divided;
}

std::vector<std::string> VoiceTrainable::measures() const { return {"mel_distance", "cepstral_distortion"}; }

std::vector<at::Tensor> VoiceTrainable::measure(std::span<const Weights> weights, const TensorMap& batch,
                                                const TensorMap& noise) const {
  const MelDistances distances =
      voice_.mel_distances(weights.front(), voice_batch(batch), flow_noise(noise, batch.rows), {});
  return {distances.mel, distances.cepstral};
}

at::Tensor VoiceTrainable::teacher_forced(const Weights& weights, const TensorMap& batch,
                                          const TensorMap& noise) const {
  return voice_.teacher_forced(weights, voice_batch(batch), flow_noise(noise), {});
}

bool VoiceTrainable::overwrites_gradients(const Weights& weights) const { return voice_.uses_fused(weights.flat); }

std::map<std::string, std::string> VoiceTrainable::metadata() const { return description_.to_metadata(); }

Samples VoiceTrainable::samples(std::span<const Weights> weights, const Corpus& corpus, const BatchPlan& plan,
                                at::Device device) const {
  const at::NoGradGuard no_gradients;
  // One row: what the first of as many ranks as the batch has rows would get.
  const uint64_t rows = plan.batch(0, 0).clips.size();
  const BatchLease batch = make_batch(RowBuilder(corpus, plan, arrays(), rows), plan.batch(0, 0, 0, rows), 1);
  if (batch->clips.front() == no_clip) fail("samples", "the first clip of the plan cannot be read");
  const CorpusClip clip = corpus.clip(batch->clips.front());
  const int64_t tokens = batch->lengths[0].tokens, frames = batch->lengths[0].mel_frames;
  TensorMap one;
  for (const auto& [name, tensor] : tensors_of(*batch)) one.add(name, tensor.to(device));
  TensorMap noise = make_noise(one);
  draw_noise(noise, seeded_generator(device, 1), {});
  const VoiceLosses losses = voice_.losses(weights.front(), voice_batch(one), flow_noise(noise));
  const at::Tensor path = losses.token_of_frame[0].narrow(0, 0, frames).unsqueeze(0) ==
                          at::arange(tokens, one["tokens"].options()).unsqueeze(1);
  Samples samples;
  samples.pictures.push_back(
      heat_map("alignment", "alignment of \"" + clip.text + "\": tokens upwards, frames to the right", path));
  samples.pictures.push_back(heat_map("mel_true", "its true mel", one["mel"][0].narrow(0, 0, frames).t()));

  const std::string& wanted = description_.config.training.sample_text;
  const std::string& text = wanted.empty() ? clip.text : wanted;
  std::vector<int64_t> numbers;
  if (wanted.empty()) {
    const std::span<const int32_t> row = (*batch)["tokens"].values<const int32_t>();
    numbers.assign(row.begin(), row.begin() + tokens);
  } else {
    const std::vector<uint16_t> encoded = tokens_of_text(description_, wanted);
    numbers.assign(encoded.begin(), encoded.end());
  }
  SpeakingAs speaker;
  if (voice_.spec().conditioned()) {  // as the clip's own speaker
    const int64_t number = one["speaker"].item<int>();
    speaker.vector = number >= 0 ? voice_.speaker_vector(weights.front(), number)
                                 : voice_.reference_vector(weights.front(), one["mel"][0].narrow(0, 0, frames));
    const std::string& language = wanted.empty() ? clip.language : description_.config.data.language;
    const auto known = std::ranges::find(description_.languages, language);
    speaker.language = known != description_.languages.end() ? known - description_.languages.begin() : -1;
  }
  const PlainCpuProducts plain;  // it is of another length each time
  const SynthesizedMel spoken = voice_.synthesize(weights.front(), numbers, {}, speaker);
  samples.pictures.push_back(heat_map("mel_spoken", "as the voice speaks it", spoken.mel.t()));
  GriffinLimOptions options;
  options.threads = available_cores();
  const std::vector<float> sound =
      griffin_lim(corpus.mel, {spoken.mel.const_data_ptr<float>(), static_cast<size_t>(spoken.mel.numel())},
                  spoken.mel.size(0), options);
  const std::vector<std::byte> wav = make_wav(sound, corpus.mel.sample_rate);
  samples.sounds.push_back({"spoken", "\"" + text + "\"",
                            std::string(reinterpret_cast<const char*>(wav.data()), wav.size()), corpus.mel.sample_rate,
                            static_cast<int64_t>(sound.size())});
  return samples;
}

}  // namespace myxtts
