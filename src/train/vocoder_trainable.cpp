#include "train/vocoder_trainable.h"

#include "audio/wav.h"
#include "features/mel.h"
#include "loader/row_builder.h"

#include <array>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

enum Group : size_t { discriminator, generator };
const Weights& of_generator(std::span<const Weights> weights) { return weights.back(); }

// The mel that distances are measured in: over all frequencies, whatever the convention that is spoken leaves out.
MelSpec full_band(const MelSpec& mel, int n_fft) {
  MelSpec full;
  full.name = "full band", full.sample_rate = mel.sample_rate;
  full.n_fft = full.win_length = n_fft, full.hop_length = n_fft / 4;
  full.n_mels = n_fft >= 1024 ? 100 : 50;
  full.f_max = 0;
  return full;
}

constexpr double mel_weight = 45;
constexpr double spectrum_weight = 15;  // where there are no discriminators

at::Tensor has_clip(const TensorMap& batch) { return (batch["mel_lengths"] > 0).to(at::kFloat); }

// The mean over rows that have a clip; `values` has one per row.
at::Tensor mean_of_clips(const at::Tensor& values, const TensorMap& batch) {
  const at::Tensor valid = has_clip(batch);
  const at::Tensor clips = batch.contains("whole_clips") ? batch["whole_clips"] : valid.sum();
  return (values * valid).sum() / clips.clamp_min(1);
}

// Of a mean over these rows, what they add to the mean over the whole batch.
at::Tensor share_of_mean(const at::Tensor& mean, const TensorMap& batch) {
  return batch.rows.stride == 1 ? mean : mean / static_cast<double>(batch.rows.stride);
}

// Per row, the distance between log magnitudes plus the error of the magnitudes relative to the recording's.
at::Tensor spectrum_distance(const std::vector<at::Tensor>& made, const std::vector<at::Tensor>& real) {
  constexpr double quietest = 1e-4;
  at::Tensor sum;
  for (size_t i = 0; i < made.size(); ++i) {
    const at::Tensor in_log = ((made[i] + quietest).log() - (real[i] + quietest).log()).abs().mean({1, 2});
    const at::Tensor error = (made[i] - real[i]).square().sum({1, 2}), all = real[i].square().sum({1, 2});
    const at::Tensor relative = ((error + quietest) / (all + quietest)).sqrt();
    sum = sum.defined() ? sum + in_log + relative : in_log + relative;
  }
  return sum / static_cast<double>(made.size());
}

}  // namespace

VocoderTrainable::VocoderTrainable(const VocoderSpec& spec, const MelSpec& mel, const OptimizerSettings& optimizer,
                                   bool fused, at::Device device, Options options)
    : vocoder_(spec, fused),
      discriminators_(spec.size.narrower),
      mel_(mel),
      optimizer_(optimizer),
      fused_(fused),
      tables_(make_spectrum_tables(spec.frames, device)),
      discriminator_tables_(Discriminators::make_tables(device)),
      loudness_(make_loudness_tables(mel.sample_rate, device)),
      options_(std::move(options)) {
  for (const int64_t window : Discriminators::windows()) {
    mels_.push_back(make_mel_tables(full_band(mel, static_cast<int>(window)), device));
  }
  // Otherwise cuDNN may add up a convolution's gradient in any order.
  if (device.is_cuda()) at::globalContext().setDeterministicCuDNN(true);
}

std::vector<std::string> VocoderTrainable::arrays() const {
  return options_.teacher ? placed_vocoder_arrays() : vocoder_arrays();
}

std::vector<ParameterGroup> VocoderTrainable::groups() const {
  OptimizerSettings settings = optimizer_;
  settings.beta1 = 0.8, settings.beta2 = 0.9;
  if (!options_.adversarial)
    return {{"generator", &vocoder_.layout(), settings, 1, {"loss", "loss_mel", "loss_spectrum"}}};
  return {{"discriminator", &discriminators_.layout(), settings, 1, {"loss_discriminator"}},
          {"generator", &vocoder_.layout(), settings, 1, {"loss", "loss_mel", "loss_adversarial", "loss_features"}}};
}

TensorMap VocoderTrainable::example(const StepSignature& shape, at::Device device) const {
  const auto floats = at::TensorOptions(at::kFloat).device(device);
  TensorMap batch = {{"samples", at::zeros({shape.rows, crop_samples}, floats)},
                     {"mel", at::zeros({shape.rows, shape.mel_frames, mel_.n_mels}, floats)},
                     {"mel_lengths", at::full({shape.rows}, shape.mel_frames, floats.dtype(at::kInt))}};
  if (options_.teacher) batch.add("crop", at::zeros({shape.rows, 2}, floats.dtype(at::kInt)));
  return batch;
}

at::Tensor VocoderTrainable::input(const TensorMap& batch) const {
  return options_.teacher ? crops_of(*options_.teacher, batch["crop"], batch["mel"]) : batch["mel"];
}

at::Tensor VocoderTrainable::waveform(std::span<const Weights> weights, const TensorMap& batch,
                                      const Inspect& inspect) const {
  return vocoder_.waveform(of_generator(weights), tables_, input(batch), batch["samples"].size(1), inspect);
}

at::Tensor VocoderTrainable::mel_distance(const Spectra& made, const Spectra& real, const TensorMap& batch) const {
  at::Tensor sum;
  for (size_t i = 0; i < mels_.size(); ++i) {
    const at::Tensor distance =
        (log_mel_of_magnitudes(mels_[i], made[i]) - log_mel_of_magnitudes(mels_[i], real[i])).abs().mean({1, 2});
    sum = sum.defined() ? sum + distance : distance;
  }
  return mean_of_clips(sum, batch) / static_cast<double>(mels_.size());
}

std::vector<at::Tensor> VocoderTrainable::distances(std::span<const Weights> weights, const TensorMap& batch,
                                                    const Inspect& inspect) const {
  const Spectra made = spectra(waveform(weights, batch, inspect)), real = spectra(batch["samples"]);
  const at::Tensor mel = mel_distance(made, real, batch),
                   spectrum = mean_of_clips(spectrum_distance(made, real), batch);
  return {mel_weight * mel + spectrum_weight * spectrum, mel, spectrum};
}

std::vector<at::Tensor> VocoderTrainable::losses(size_t group, std::span<const Weights> weights, const TensorMap& batch,
                                                 const TensorMap& /*noise*/, const Inspect& inspect) const {
  if (!options_.adversarial) return distances(weights, batch, inspect);
  const at::Tensor& real = batch["samples"];
  const auto judge = [&](const at::Tensor& samples, const Spectra& own) {
    return discriminators_.judge(weights[discriminator], samples, own);
  };
  if (group == discriminator) {
    at::Tensor made;
    {
      const at::NoGradGuard no_gradients;
      made = waveform(weights, batch, inspect);
    }
    const at::Tensor both = at::cat({real, made});
    return {share_of_mean(discriminator_loss(judge(both, spectra(both))), batch)};
  }
  const at::Tensor made = waveform(weights, batch, inspect);
  const Spectra made_spectra = spectra(made);
  Spectra real_spectra;
  std::vector<Judgement> of_real;
  {
    const at::NoGradGuard no_gradients;
    real_spectra = spectra(real);
    of_real = judge(real, real_spectra);
  }
  const std::vector<Judgement> of_made = judge(made, made_spectra);
  const at::Tensor mel = mel_distance(made_spectra, real_spectra, batch),
                   adversarial = share_of_mean(adversarial_loss(of_made), batch),
                   features = share_of_mean(feature_loss(of_real, of_made), batch);
  return {mel_weight * mel + adversarial + features, mel, adversarial, features};
}

Trainable::Counts VocoderTrainable::counts(std::span<const RowLength> rows) const {
  return {{"whole_clips", std::ranges::count_if(rows, [](const RowLength& row) { return row.mel_frames > 0; })}};
}

std::vector<at::Tensor> VocoderTrainable::measure(std::span<const Weights> weights, const TensorMap& batch,
                                                  const TensorMap& /*noise*/) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor made = waveform(weights, batch, {});
  return {mel_distance(spectra(made), spectra(batch["samples"]), batch),
          mean_of_clips(loudness_distance(loudness_, made, batch["samples"]), batch)};
}

bool VocoderTrainable::overwrites_gradients(const Weights& weights) const {
  return fused_ && has_fused_kernels(weights.flat);  // the discriminators have no trunk
}

Samples VocoderTrainable::samples(std::span<const Weights> weights, const Corpus& corpus, const BatchPlan& plan,
                                  at::Device device) const {
  Samples samples;
  const uint32_t number = plan.batch(0, 0).clips.front();
  if (number == no_clip) return samples;
  const std::vector<float> real = read_used_part(corpus, corpus.clip(number));
  const Mel mel = MelCpu(corpus.mel).compute(real);
  const at::NoGradGuard no_gradients;
  at::Tensor heard = at::tensor(mel.values).view({1, mel.frames, mel.n_mels}).to(device);
  if (options_.teacher) {
    heard = crops_of(*options_.teacher, at::tensor({static_cast<int64_t>(number), int64_t{0}}).view({1, 2}).to(device),
                     heard);
  }
  const at::Tensor made = vocoder_.waveform(of_generator(weights), tables_, heard, static_cast<int64_t>(real.size()));
  const at::Tensor spoken = made[0].cpu().contiguous();
  const auto add = [&](const char* name, const char* title, std::span<const float> sound) {
    const std::vector<std::byte> wav = make_wav(sound, mel_.sample_rate);
    samples.sounds.push_back({name, title, std::string(reinterpret_cast<const char*>(wav.data()), wav.size()),
                              mel_.sample_rate, static_cast<int64_t>(sound.size())});
  };
  add("recording", "the recording", real);
  add("spoken", "its mel through the vocoder", {spoken.const_data_ptr<float>(), static_cast<size_t>(spoken.numel())});
  return samples;
}

}  // namespace myxtts
