#include "synth/vocoder_runner.h"

#include "features/cpu/griffin_lim.h"
#include "model/cpu_products.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

// Lengths share a capture in steps of this many frames: about a second.
constexpr int64_t frames_apart = 96;

int64_t rounded_up(int64_t frames) { return (frames + frames_apart - 1) / frames_apart * frames_apart; }

}  // namespace

VocoderRunner::VocoderRunner(const VocoderSpec& spec, const MelSpec& mel, const at::Tensor& flat, at::Device device)
    : mel_(mel), vocoder_(spec), tables_(make_spectrum_tables(spec.frames, device)) {
  const bool gpu = device.is_cuda();  // there in bfloat16, as it was trained
  weights_ = make_weights(vocoder_.layout(), flat.to(device, gpu ? at::kBFloat16 : at::kFloat), false);
  if (!gpu) use_fast_cpu_products();
  if (gpu) capturer_ = make_graph_capturer(device.index());
}

VocoderRunner::Captured& VocoderRunner::captured(int64_t frames) const {
  const auto [found, added] = captured_.try_emplace(frames);
  Captured& made = found->second;
  if (!added) return made;
  try {
    const int64_t samples = griffin_lim_samples(mel_, frames);
    const auto on_gpu = tables_.window.options();
    const auto pinned = at::TensorOptions(at::kFloat).pinned_memory(true);
    made.mel = at::zeros({1, frames, mel_.n_mels}, on_gpu);
    made.lengths = at::full({1}, frames, on_gpu.dtype(at::kInt));
    made.host_mel = at::zeros(made.mel.sizes(), pinned);
    made.host_lengths = at::full({1}, frames, pinned.dtype(at::kInt));
    made.samples = at::zeros({1, samples}, pinned);
    const auto work = [&] {
      made.mel.copy_(made.host_mel, /*non_blocking=*/true);
      made.lengths.copy_(made.host_lengths, true);
      made.samples.copy_(vocoder_.waveform(weights_, tables_, made.mel, samples, {}, made.lengths), true);
    };
    work();  // so that libraries make what they keep outside of a capture
    made.graph = capturer_->capture(work);
  } catch (...) {
    captured_.erase(found);
    throw;
  }
  return made;
}

std::vector<float> VocoderRunner::waveform(const at::Tensor& mel) const {
  const at::NoGradGuard no_gradients;
  const int64_t frames = mel.size(0), samples = griffin_lim_samples(mel_, frames);
  if (!capturer_) {
    const at::Tensor wave = vocoder_.waveform(weights_, tables_, mel.unsqueeze(0), samples).contiguous();
    return {wave.const_data_ptr<float>(), wave.const_data_ptr<float>() + samples};
  }
  const std::lock_guard lock(turn_);
  const auto stream = use_own_stream(tables_.window.device().index());
  Captured& run = captured(rounded_up(frames));
  run.host_mel[0].narrow(0, 0, frames).copy_(mel);
  run.host_lengths.fill_(frames);
  run.graph->replay();
  stream->synchronize();
  const auto* const made = run.samples.const_data_ptr<float>();
  return {made, made + samples};
}

// The longest first: what it leaves in the common memory is enough for the others.
void VocoderRunner::warm_up(int64_t frames) const {
  if (!capturer_) return;
  const at::NoGradGuard no_gradients;
  const std::lock_guard lock(turn_);
  const auto stream = use_own_stream(tables_.window.device().index());
  for (int64_t count = rounded_up(frames); count > 0; count -= frames_apart) captured(count);
  stream->synchronize();
}

}  // namespace myxtts
