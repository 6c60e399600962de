#include "train/samples.h"

#include "artifacts/png.h"
#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "base/workers.h"
#include "features/cpu/griffin_lim.h"
#include "loader/batch.h"
#include "train/step.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

std::string picture_of(const at::Tensor& matrix, std::vector<std::pair<int, int>>& sizes) {
  const at::Tensor plain = matrix.to(at::kCPU, at::kFloat).contiguous();
  const int rows = static_cast<int>(plain.size(0)), columns = static_cast<int>(plain.size(1));
  HeatmapOptions options;
  options.scale = 2;
  sizes.emplace_back(columns * options.scale, rows * options.scale);
  return make_png_heatmap({plain.const_data_ptr<float>(), static_cast<size_t>(plain.numel())}, rows, columns, options);
}

}  // namespace

Samples make_samples(const Voice& voice, const Weights& weights, const VoiceDescription& description,
                     const Corpus& corpus, const BatchPlan& plan, at::Device device) {
  const at::NoGradGuard no_gradients;
  Samples samples;
  samples.sample_rate = corpus.mel.sample_rate;
  PlannedBatch planned = plan.batch(0, 0);
  planned.clips.resize(1);
  const Batch batch = make_batch(corpus, plan, planned, 1);
  if (batch.clips.front() == no_clip) fail("samples", "the first clip of the plan cannot be read");
  const CorpusClip clip = corpus.clip(batch.clips.front());
  const int64_t tokens = batch.text_lengths[0], frames = batch.mel_lengths[0];
  const auto ints = at::TensorOptions().dtype(at::kInt);
  const VoiceBatch one = {at::tensor(batch.tokens, ints).view({1, -1}).to(device),
                          at::tensor(batch.text_lengths, ints).to(device),
                          at::tensor(batch.mel_lengths, ints).to(device),
                          at::tensor(batch.mel).view({1, batch.mel_frames, batch.n_mels}).to(device)};
  const VoiceLosses losses = voice.losses(weights, one, draw_noise(one, 1));
  const at::Tensor path = losses.token_of_frame[0].narrow(0, 0, frames).unsqueeze(0) ==
                          at::arange(tokens, ints.device(device)).unsqueeze(1);
  samples.pictures.push_back({"alignment of \"" + clip.text + "\": tokens upwards, frames to the right",
                              picture_of(path, samples.picture_sizes)});
  samples.pictures.push_back({"its true mel", picture_of(one.mel[0].narrow(0, 0, frames).t(), samples.picture_sizes)});

  const std::string& wished = description.config.training.sample_text;
  samples.text = wished.empty() ? clip.text : wished;
  const std::vector<uint16_t> spoken_tokens =
      wished.empty() ? tokens_of(corpus, clip) : tokens_of_text(description, wished);
  const Spoken spoken = voice.speak(weights, {spoken_tokens.begin(), spoken_tokens.end()}, {});
  samples.pictures.push_back({"as the voice speaks it", picture_of(spoken.mel.t(), samples.picture_sizes)});
  GriffinLimOptions options;
  options.threads = available_cores();
  samples.samples =
      griffin_lim(corpus.mel, {spoken.mel.const_data_ptr<float>(), static_cast<size_t>(spoken.mel.numel())},
                  spoken.mel.size(0), options);
  const std::vector<std::byte> wav = make_wav(samples.samples, samples.sample_rate);
  samples.sounds.push_back(
      {"\"" + samples.text + "\"", std::string(reinterpret_cast<const char*>(wav.data()), wav.size())});
  return samples;
}

void record_samples(const Samples& samples, EventWriter& events, int64_t step, const std::filesystem::path& folder) {
  constexpr const char* names[] = {"alignment", "mel_true", "mel_spoken"};
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < samples.pictures.size(); ++i) {
    const auto [width, height] = samples.picture_sizes[i];
    events.image(names[i], step, samples.pictures[i].png, width, height);
    write_file_atomically(folder / (std::string(names[i]) + ".png"), samples.pictures[i].png, Sync::no);
  }
  const std::string& wav = samples.sounds.front().wav;
  events.audio("spoken", step, std::as_bytes(std::span(wav)), samples.sample_rate,
               static_cast<int64_t>(samples.samples.size()));
  write_file_atomically(folder / "spoken.wav", wav, Sync::no);
  events.flush();
}

}  // namespace myxtts
