#include "train/step_bench.h"

#include "base/clock.h"
#include "train/kernel_profile.h"
#include "train/step.h"

#include <optional>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

// Of blocks over `positions`: projections, feed-forward and attention, forward; backward takes twice as many.
double block_flop(int64_t blocks, int64_t width, int64_t positions) {
  const auto w = static_cast<double>(width), p = static_cast<double>(positions);
  return static_cast<double>(blocks) * p * (2 * w * w * (4 + 2 * feed_forward_factor) + 4 * p * w);
}

}  // namespace

StepTimes measure_step(const StepBench& bench) {
  VoiceSpec spec;
  spec.size = model_size(bench.size);
  spec.vocabulary = 60;
  spec.n_mels = 80;
  const Voice voice(spec, bench.fused);
  StepSettings settings;
  const bool gpu = bench.device >= 0;
  if (gpu) settings.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(bench.device));
  settings.type = gpu && bench.half ? at::kBFloat16 : at::kFloat;
  settings.record = gpu && bench.record;
  settings.fused = bench.fused;
  TrainingStep step(voice, voice.layout().initial(1), settings);

  StepTimes times;
  times.parameters = voice.layout().parameters();
  times.flop = 3 * static_cast<double>(bench.rows) *
               (block_flop(spec.size.encoder_blocks, spec.size.encoder_width, bench.tokens) +
                block_flop(spec.size.decoder_blocks, spec.size.decoder_width, bench.frames));
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(settings.device);
  const VoiceBatch batch = {
      at::randint(Vocabulary::first_symbol, spec.vocabulary, {bench.rows, bench.tokens}, floats.dtype(at::kInt)),
      at::full({bench.rows}, bench.tokens, floats.dtype(at::kInt)),
      at::full({bench.rows}, bench.frames, floats.dtype(at::kInt)),
      at::randn({bench.rows, bench.frames, spec.n_mels}, floats)};
  const Stopwatch recording;
  step.record({signature_of(batch, false)});
  times.record_s = recording.seconds();
  uint64_t seed = 0;
  const auto run = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      step.add(batch, ++seed);
      step.update(1e-4);
    }
  };
  run(3);
  step.figures();
  std::optional<DeviceTimer> timer;
  if (gpu) timer.emplace(bench.device);
  for (int64_t repeat = 0; repeat < bench.repeats; ++repeat) {
    const Stopwatch clock;
    if (timer) timer->start(step.stream());
    run(bench.steps_each);
    times.step_ms.push_back((timer ? timer->stop_ms(step.stream()) : clock.ms()) /
                            static_cast<double>(bench.steps_each));
  }
  if (gpu && bench.profiled_steps > 0) {
    times.kernels = profile_kernels([&] {
      run(bench.profiled_steps);
      step.figures();
    });
    for (KernelTime& kernel : times.kernels) {
      kernel.launches /= static_cast<double>(bench.profiled_steps);
      kernel.ms /= static_cast<double>(bench.profiled_steps);
    }
  }
  return times;
}

}  // namespace myxtts
