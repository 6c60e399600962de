#include "train/step_bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/reference_plan.h"
#include "plan/shapes.h"
#include "train/device_sum.h"
#include "train/kernel_profile.h"
#include "train/memory_plan.h"
#include "train/step.h"
#include "train/vocoder_trainable.h"
#include "train/voice_trainable.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace myxtts {
namespace {

// Of blocks over `positions`: projections, feed-forward and attention, forward; backward takes twice as many.
double block_flop(int64_t blocks, int64_t width, int64_t positions, int64_t factor, int64_t kernel) {
  const auto w = static_cast<double>(width), p = static_cast<double>(positions);
  const auto matrices = static_cast<double>(4 + (1 + kernel) * factor);
  return static_cast<double>(blocks) * p * (2 * w * w * matrices + 4 * p * w);
}

double step_flop(const VoiceSpec& spec, int64_t rows, int64_t tokens, int64_t frames) {
  return 3 * static_cast<double>(rows) *
         (block_flop(spec.size.encoder_blocks, spec.size.encoder_width, tokens, encoder_factor,
                     spec.convolutions ? encoder_kernel : 1) +
          block_flop(spec.size.decoder_blocks, spec.size.decoder_width, frames, decoder_factor, 1));
}

constexpr int64_t vocabulary = 60, n_mels = 80;

VoiceSpec bench_voice(const StepBench& bench) {
  VoiceSpec spec;
  spec.size = model_size(bench.size);
  if (bench.encoder_blocks > 0) spec.size.encoder_blocks = bench.encoder_blocks;
  spec.convolutions = bench.convolutions;
  spec.vocabulary = vocabulary;
  spec.n_mels = n_mels;
  spec.speakers = bench.speakers, spec.languages = bench.speakers > 0 ? 2 : 0;
  return spec;
}

double dropout_of(const StepBench& bench) { return bench.convolutions ? 0.1 : 0; }

// Speakers, languages and references of a conditioned voice.
void add_condition(TensorMap& batch, const VoiceSpec& spec) {
  if (!spec.conditioned()) return;
  const int64_t rows = batch["tokens"].size(0), heard = reference_rows(rows);
  const at::TensorOptions ints = batch["tokens"].options(), floats = batch["mel"].options();
  const TensorMap condition = {{"speaker", at::randint(spec.speakers, {rows}, ints)},
                               {"language", at::randint(spec.languages, {rows}, ints)},
                               {"reference", at::randn({heard, reference_frames, spec.n_mels}, floats)},
                               {"reference_lengths", at::full({heard}, reference_frames, ints)}};
  for (const auto& [name, tensor] : condition) batch.add(name, tensor);
}

at::Device device_of(const StepBench& bench) {
  return bench.device >= 0 ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(bench.device)) : at::kCPU;
}

StepSettings bench_settings(const StepBench& bench) {
  StepSettings settings;
  const bool gpu = bench.device >= 0;
  settings.device = device_of(bench);
  settings.policy.bfloat16 = gpu && bench.half;
  settings.policy.fast_products = !gpu;
  settings.policy.capture = gpu && bench.capture;
  settings.policy.fused = bench.fused;
  return settings;
}

// Rows of `length`, padded to `shape`.
TensorMap random_batch(int64_t rows, const ClipLength& length, const Shape& shape, at::Device device) {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device), ints = floats.dtype(at::kInt);
  const int64_t tokens = length.tokens, frames = length.mel_frames;
  TensorMap batch = {{"tokens", at::randint(Vocabulary::first_symbol, vocabulary, {rows, shape.text_length}, ints)},
                     {"mel", at::randn({rows, shape.mel_frames, n_mels}, floats)},
                     {"text_lengths", at::full({rows}, tokens, ints)},
                     {"mel_lengths", at::full({rows}, frames, ints)}};
  batch["tokens"].narrow(1, tokens, shape.text_length - tokens).zero_();
  batch["mel"].narrow(1, frames, shape.mel_frames - frames).zero_();
  return batch;
}

// Points in time, between pieces of the device's work or, on the CPU, of our own.
class Marks {
 public:
  explicit Marks(at::Device device) : device_(device) {}

  void mark() {
    if (device_.is_cpu()) {
      clock_ms_.push_back(clock_.ms());
      return;
    }
    events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with its time
    events_.back().record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }

  // Once the device is done.
  std::vector<double> between_ms() const {
    std::vector<double> between;
    for (size_t i = 1; i < clock_ms_.size(); ++i) between.push_back(clock_ms_[i] - clock_ms_[i - 1]);
    for (size_t i = 1; i < events_.size(); ++i) between.push_back(events_[i - 1].elapsedTime(events_[i]));
    return between;
  }

 private:
  at::Device device_;
  Stopwatch clock_;
  std::vector<double> clock_ms_;
  std::vector<c10::Event> events_;
};

// Steps on `batch`, captured and warmed up before.
StepTimes measure(const Trainable& trainable, const TensorMap& batch, const StepBench& bench) {
  StepSettings settings = bench_settings(bench);
  const bool gpu = bench.device >= 0;
  const uint64_t free_before = gpu ? device_memory(bench.device).free_bytes : 0;
  std::unique_ptr<DeviceSum> sum;
  if (bench.reduce) {
    if (device_sum_library().empty()) reject_input("bench", "there is no NCCL here", way_out("leave --reduce out"));
    constexpr double patience_s = 60;
    sum = make_device_sum(make_device_sum_id(), 0, 1, bench.device, patience_s);
    settings.device_sum = sum.get();
  }
  TrainingStep step(trainable, settings);
  StepTimes times;
  const Stopwatch capturing;
  step.capture({signature_of(batch, false)});
  times.capture_s = capturing.seconds();
  uint64_t seed = 0;
  const auto run = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      step.begin(1e-4);
      step.add(batch, ++seed);
      step.update();
    }
  };
  // The first steps on a GPU vary more than later ones: measured is what a long run has.
  const Stopwatch warming;
  do {
    run(3);
    step.values();
  } while (gpu && warming.seconds() < 1);
  std::optional<DeviceTimer> timer;
  if (gpu) timer.emplace(bench.device);
  for (int64_t repeat = 0; repeat < bench.repeats; ++repeat) {
    const Stopwatch clock;
    if (timer) timer->start(step.stream());
    run(bench.steps_each);
    times.step_ms.push_back((timer ? timer->stop_ms(step.stream()) : clock.ms()) /
                            static_cast<double>(bench.steps_each));
  }
  if (gpu)
    times.memory_bytes = static_cast<double>(free_before) - static_cast<double>(device_memory(bench.device).free_bytes);
  if (gpu && bench.profiled_steps > 0) {
    times.kernels = profile_kernels([&] {
      run(bench.profiled_steps);
      step.values();
    });
    for (KernelTime& kernel : times.kernels) {
      kernel.launches /= static_cast<double>(bench.profiled_steps);
      kernel.ms /= static_cast<double>(bench.profiled_steps);
    }
  }
  return times;
}

StepTimes measure_voice_step(const StepBench& bench) {
  const VoiceTrainable trainable(bench_voice(bench), {}, bench.fused, dropout_of(bench));
  const VoiceSpec& spec = trainable.voice().spec();
  ClipLength length;
  length.mel_frames = static_cast<uint32_t>(bench.frames), length.tokens = static_cast<uint32_t>(bench.tokens);
  TensorMap batch = random_batch(bench.rows, length, {bench.tokens, bench.frames, bench.rows, {}}, device_of(bench));
  add_condition(batch, spec);
  StepTimes times = measure(trainable, batch, bench);
  times.parameters = trainable.voice().layout().parameters();
  times.flop = step_flop(spec, bench.rows, bench.tokens, bench.frames);
  if (bench.device >= 0) {
    const bool fused = bench.fused && bench.half;
    times.estimated_bytes =
        StepMemory{spec.size, bench.frames, bench.tokens, spec.n_mels, bench.half, fused}.bytes(bench.rows);
  }
  return times;
}

StepTimes measure_vocoder_step(const StepBench& bench) {
  const MelSpec& mel = mel_preset("bigvgan_24k");
  const at::Device device = device_of(bench);
  const VocoderTrainable trainable(vocoder_spec(bench.size, mel, -5, 2), mel, {}, bench.fused, device, {});
  const StepSignature shape{bench.rows, 0, mel.frames(crop_samples), false};
  TensorMap batch = trainable.example(shape, device);
  batch["samples"].normal_(0, 0.1);
  batch["mel"].normal_(-5, 2);
  StepTimes times = measure(trainable, batch, bench);
  for (const ParameterGroup& group : trainable.groups()) times.parameters += group.layout->parameters();
  return times;
}

}  // namespace

StepTimes measure_step(const StepBench& bench) {
  return bench.target == "vocoder" ? measure_vocoder_step(bench) : measure_voice_step(bench);
}

VaryingTimes measure_varying_step(const StepBench& bench, const std::vector<int64_t>& lengths, int64_t most_shapes) {
  const VoiceTrainable trainable(bench_voice(bench), {}, bench.fused, dropout_of(bench));
  const VoiceSpec& spec = trainable.voice().spec();
  const StepSettings settings = bench_settings(bench);
  TrainingStep step(trainable, settings);

  std::vector<ClipLength> clips(lengths.size());  // to the plan each batch is one clip
  VaryingTimes times;
  times.parameters = trainable.voice().layout().parameters();
  for (size_t i = 0; i < lengths.size(); ++i) {
    const double tokens = static_cast<double>(bench.tokens * lengths[i]) / static_cast<double>(bench.frames);
    clips[i].mel_frames = static_cast<uint32_t>(lengths[i]);
    clips[i].tokens = static_cast<uint32_t>(std::max(1.0, std::nearbyint(tokens)));
    times.flop += step_flop(spec, bench.rows, clips[i].tokens, lengths[i]) / static_cast<double>(lengths.size());
    constexpr double seconds_a_frame = 256.0 / 22050;
    times.audio_s += static_cast<double>(bench.rows * lengths[i]) * seconds_a_frame;
  }
  DataConfig data;
  data.batch_size = {1, 1};
  data.shape_buckets = most_shapes;
  const ShapePlan plan = plan_shapes(clips, data);
  times.padding = plan.padding;
  times.shapes = static_cast<int64_t>(plan.shapes.size());

  std::vector<StepSignature> signatures;
  std::vector<const TensorMap*> batches(lengths.size());
  std::map<int64_t, TensorMap> by_length;
  for (const Shape& shape : plan.shapes) {
    signatures.push_back({bench.rows, shape.text_length, shape.mel_frames, false});
    for (const uint32_t clip : shape.clips) {
      TensorMap& batch = by_length[lengths[clip]];
      if (!batch.contains("mel")) {
        batch = random_batch(bench.rows, clips[clip], shape, settings.device);
        add_condition(batch, spec);
      }
      batches[clip] = &batch;
    }
  }
  const Stopwatch capturing;
  step.capture(signatures);
  times.capture_s = capturing.seconds();
  uint64_t seed = 0;
  const auto run = [&](const TensorMap& batch) {
    step.begin(1e-4);
    step.add(batch, ++seed);
    step.update();
  };
  for (const Shape& shape : plan.shapes) run(*batches[shape.clips.front()]);  // what is done once for each
  step.values();
  Marks marks(settings.device);
  marks.mark();
  for (const TensorMap* batch : batches) {
    run(*batch);
    marks.mark();
  }
  step.values();
  times.step_ms = marks.between_ms();
  times.captures = step.captures();
  return times;
}

}  // namespace myxtts
