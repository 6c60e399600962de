#include "synth/vocoder_bench.h"

#include "base/clock.h"
#include "features/cpu/griffin_lim.h"
#include "model/torch_device.h"
#include "synth/vocoder_file.h"
#include "synth/vocoder_runner.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

std::vector<double> time(int repeats, const std::function<void()>& work) {
  constexpr int warm_up = 3;
  std::vector<double> seconds;
  for (int i = 0; i < warm_up + repeats; ++i) {
    const Stopwatch clock;
    work();
    if (i >= warm_up) seconds.push_back(clock.seconds());
  }
  return seconds;
}

// The products of one waveform: first convolution, feed-forwards, head and, on a GPU, the inverse spectrum.
double products_s(const VocoderSpec& spec, int64_t frames, at::Device device, int repeats) {
  const int64_t width = spec.size.width, hidden = spec.size.hidden, values = spec.frames.n_fft + 2;
  std::vector<std::pair<at::Tensor, at::Tensor>> products;
  const auto add = [&](int64_t in, int64_t out) {
    products.emplace_back(at::randn({frames, in}, device), at::randn({out, in}, device));
  };
  add(vocoder_kernel * spec.n_mels, width);
  for (int64_t i = 0; i < spec.size.blocks; ++i) add(width, hidden), add(hidden, width);
  add(width, values);
  if (!device.is_cpu()) add(values, spec.frames.n_fft);
  std::vector<double> seconds = time(repeats, [&] {
    at::Tensor last;
    for (const auto& [x, weight] : products) last = at::mm(x, weight.t());
    if (!device.is_cpu()) last.sum().item<float>();
  });
  std::ranges::nth_element(seconds, seconds.begin() + repeats / 2);
  return seconds[static_cast<size_t>(repeats / 2)];
}

}  // namespace

VocoderTimes measure_vocoder(const VocoderBench& bench) {
  const at::NoGradGuard no_gradients;
  const at::Device device = torch_device(bench.device);
  if (device.is_cpu()) at::set_num_threads(bench.threads);
  const MelSpec& mel = mel_preset(bench.preset);
  const VocoderSpec spec = vocoder_spec(bench.size, mel, -5, 2);
  const ParameterLayout layout = Vocoder(spec).layout();
  const VocoderRunner runner(spec, mel, layout.initial(1), device);
  const auto frames = std::max<int64_t>(1, std::llround(bench.seconds * mel.sample_rate / mel.hop_length));
  const int64_t samples = griffin_lim_samples(mel, frames);
  const at::Tensor input = at::randn({frames, mel.n_mels}) * 2 - 5;
  VocoderTimes times;
  times.parameters = layout.parameters();
  times.sound_s = static_cast<double>(samples) / mel.sample_rate;
  times.waveform_s = time(bench.repeats, [&] { runner.waveform(input); });
  times.products_s = products_s(spec, frames, device, bench.repeats);
  return times;
}

}  // namespace myxtts
