#include "features/mel_gpu.h"

#include "audio/resample.h"
#include "device/cuda/check.h"
#include "features/cuda/filter_rounds.h"
#include "features/filter_bank.h"
#include "features/rounding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace myxtts {
namespace {

constexpr int64_t max_filter_taps = int64_t{1} << 24;

std::vector<int> radices_of(int points) {
  std::vector<int> radices;
  for (const int radix : {8, 5, 3, 4, 2}) {
    while (points % radix == 0) radices.push_back(radix), points /= radix;
  }
  return radices;
}

}  // namespace

struct MelGpu::State {
  MelSpec spec;
  int device = 0;
  MelGpuLimits limits;
  gpu::MelParams params{};
  gpu::FilterRounds rounds{};
  gpu::Passes passes{};
  gpu::RateFilters rates{};
  gpu::MelLaunch launch;
  std::vector<DeviceBuffer> tables;
  DeviceBuffer decoded, gains, unranged;

  template <typename Item>
  const Item* upload(const std::vector<Item>& items) {
    DeviceBuffer buffer(device, std::max<size_t>(items.size(), 1) * sizeof(Item));
    buffer.upload(std::as_bytes(std::span(items)));
    tables.push_back(std::move(buffer));
    return static_cast<const Item*>(tables.back().data());
  }

  State(const MelSpec& wanted, int on_device, const MelGpuLimits& wanted_limits)
      : spec(wanted), device(on_device), limits(wanted_limits) {
    CUDA_CHECK(cudaSetDevice(device));
    set_convention();
    set_tables();
    set_rates();
    const auto clips = static_cast<size_t>(limits.clips);
    params.decoded_stride = limits.samples;
    decoded = DeviceBuffer(device, clips * static_cast<size_t>(limits.samples) * sizeof(float));
    if (spec.target_rms > 0) gains = DeviceBuffer(device, clips * sizeof(float));
    if (spec.range != MelRange::none) {
      unranged = DeviceBuffer(device, clips * static_cast<size_t>(limits.frames * spec.n_mels) * sizeof(float));
    }
    CUDA_CHECK(gpu::plan_launch(params, rounds, device, launch));
  }

  void set_convention() {
    gpu::MelParams& p = params;
    p.sample_rate = spec.sample_rate, p.n_fft = spec.n_fft, p.hop = spec.hop_length, p.n_mels = spec.n_mels;
    p.first_sample = static_cast<int>(spec.first_sample());
    p.pad_zeros = spec.padding == MelPadding::centre_zeros || spec.padding == MelPadding::end;
    p.centred = spec.padding == MelPadding::centre || spec.padding == MelPadding::centre_zeros;
    p.hifigan = spec.padding == MelPadding::hifigan;
    p.drop_last_frame = spec.drop_last_frame;
    p.power = spec.mel_power == 2, p.log = spec.log != MelLog::none;
    const double to_log10 = spec.log == MelLog::log10 ? std::numbers::log10e : 1.0;
    p.exact_epsilon = spec.magnitude_epsilon, p.exact_floor = spec.log_floor, p.exact_offset = spec.log_offset;
    p.exact_log_scale = to_log10, p.exact_scale = 1.0 / spec.std, p.exact_shift = -spec.mean / spec.std;
    p.epsilon = static_cast<float>(p.exact_epsilon), p.floor = static_cast<float>(p.exact_floor);
    p.offset = static_cast<float>(p.exact_offset);
    // The hardware logarithm has base 2.
    p.scale = static_cast<float>(p.exact_scale * (p.log ? to_log10 * std::numbers::ln2 : 1.0));
    p.shift = static_cast<float>(p.exact_shift);
  }

  void set_tables() {
    gpu::MelParams& p = params;
    const std::vector<double> window = mel_window(spec);
    p.exact_window = upload(window);
    p.window = upload(std::vector<float>(window.begin(), window.end()));
    std::vector<double2> exact_twiddles;
    std::vector<float2> twiddles;
    for (int k = 0; k < spec.n_fft; ++k) {
      const double angle = -2.0 * std::numbers::pi * k / spec.n_fft;
      exact_twiddles.push_back({std::cos(angle), std::sin(angle)});
      twiddles.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    }
    p.exact_twiddles = upload(exact_twiddles), p.twiddles = upload(twiddles);
    const std::vector<MelFilter> filters = mel_filters(spec);
    p.bins = used_bins(filters);
    std::vector<int> first_bin, taps, weights_at;
    std::vector<double> weights;
    for (const MelFilter& filter : filters) {
      first_bin.push_back(filter.first_bin);
      taps.push_back(static_cast<int>(filter.weights.size()));
      weights_at.push_back(static_cast<int>(weights.size()));
      weights.insert(weights.end(), filter.weights.begin(), filter.weights.end());
    }
    p.first_bin = upload(first_bin), p.taps = upload(taps), p.weights_at = upload(weights_at);
    p.exact_weights = upload(weights), p.weights = upload(std::vector<float>(weights.begin(), weights.end()));
    const std::vector<float> shares = rounding_thresholds(spec, filters);
    p.rounding_thresholds = shares.empty() ? nullptr : upload(shares);
    launch.points_1024 =
        spec.n_fft == 1024 && spec.hop_length == 256 && p.bins <= 512 && spec.n_mels <= 32 * gpu::max_rounds;
    if (launch.points_1024) {
      set_rounds(filters, shares);
    } else {
      for (const int radix : radices_of(spec.n_fft)) passes.radix[passes.count++] = radix;
    }
  }

  void set_rounds(const std::vector<MelFilter>& filters, const std::vector<float>& thresholds) {
    const gpu::FilterSchedule schedule = gpu::schedule_filters(filters, thresholds);
    rounds.count = static_cast<int>(schedule.quads.size());
    std::copy(schedule.quads.begin(), schedule.quads.end(), rounds.quads);
    std::copy(schedule.lanes_per_filter.begin(), schedule.lanes_per_filter.end(), rounds.lanes_per_filter);
    rounds.weights = static_cast<int>(schedule.table.size());
    rounds.lanes = upload(schedule.lanes), rounds.table = upload(schedule.table);
  }

  void set_rates() {
    for (const int rate : limits.sample_rates) {
      if (rate == spec.sample_rate) continue;
      const ResampleFilter filter(rate, spec.sample_rate);
      if (rates.count == gpu::max_rates || filter.phases() * filter.taps() > max_filter_taps) {
        fail("mel", "clips of {} Hz cannot be brought to {} Hz on the GPU", rate, spec.sample_rate,
             way_out("resample them first"));
      }
      std::vector<int> first;
      for (int64_t phase = 0; phase < filter.phases(); ++phase) first.push_back(static_cast<int>(filter.first(phase)));
      rates.filters[rates.count++] = {rate,
                                      static_cast<int>(filter.phases()),
                                      static_cast<int>(filter.step()),
                                      static_cast<int>(filter.taps()),
                                      upload(first),
                                      upload(filter.table())};
    }
  }
};

MelGpu::MelGpu(const MelSpec& spec, int device, const MelGpuLimits& limits)
    : state_(std::make_unique<State>(spec, device, limits)) {}
MelGpu::~MelGpu() = default;
MelGpu::MelGpu(MelGpu&&) noexcept = default;

void MelGpu::run(const void* bytes, const GpuClip* clips, int count, bool plain, void* out, int64_t out_frames,
                 MelType type, float padding, StreamHandle stream) {
  State& state = *state_;
  if (state.launch.points_1024 && count > gpu::max_clips_1024) {
    fail("mel", "a batch of {} clips; at most {} are taken at a time", count, gpu::max_clips_1024);
  }
  if (count > state.limits.clips || out_frames > state.limits.frames) {
    fail("mel", "a batch of {} x {} frames where {} x {} was declared", count, out_frames, state.limits.clips,
         state.limits.frames);
  }
  if (count == 0 || out_frames == 0) return;
  gpu::MelParams p = state.params;
  p.bytes = static_cast<const uint8_t*>(bytes), p.clips = clips, p.count = count;
  p.decoded = static_cast<const float*>(state.decoded.data());
  p.out = out, p.out_frames = static_cast<int>(out_frames), p.bfloat16 = type == MelType::bfloat16, p.padding = padding;
  if (!plain) CUDA_CHECK(gpu::launch_decode(p, state.rates, static_cast<float*>(state.decoded.data()), stream));
  if (state.spec.target_rms > 0) {
    auto* gains = static_cast<float*>(state.gains.data());
    CUDA_CHECK(gpu::launch_gains(p, state.spec.target_rms, gains, stream));
    p.gains = gains;
  }
  if (state.spec.range == MelRange::none) {
    CUDA_CHECK(gpu::launch_mel(p, state.launch, state.rounds, state.passes, stream));
    return;
  }
  gpu::MelParams unranged = p;
  unranged.out = state.unranged.data(), unranged.bfloat16 = false;
  CUDA_CHECK(gpu::launch_mel(unranged, state.launch, state.rounds, state.passes, stream));
  CUDA_CHECK(gpu::launch_range(p, static_cast<const float*>(state.unranged.data()), state.spec.range,
                               static_cast<float>(state.spec.range_low), static_cast<float>(state.spec.range_high),
                               stream));
}

void MelGpu::samples(const void* bytes, const GpuClip* clips, int count, float* out, int64_t out_samples,
                     StreamHandle stream) {
  const State& state = *state_;
  if (out_samples > state.limits.samples) {
    fail("mel", "{} samples where {} were declared", out_samples, state.limits.samples);
  }
  if (count == 0) return;
  gpu::MelParams p = state.params;
  p.bytes = static_cast<const uint8_t*>(bytes), p.clips = clips, p.count = count;
  p.decoded = static_cast<const float*>(state.decoded.data());
  CUDA_CHECK(gpu::launch_samples(p, out, out_samples, stream));
}

Mel mel_on_gpu(const MelSpec& spec, int device, std::span<const std::byte> bytes, const GpuClip& clip) {
  const ResampleFilter filter(clip.sample_rate, spec.sample_rate);
  const auto samples = static_cast<int64_t>(filter.output_length(clip.samples));
  Mel mel{samples == 0 ? 0 : spec.frames(samples), spec.n_mels, {}};
  if (mel.frames == 0) return mel;
  MelGpu gpu_mel(spec, device, {1, samples, mel.frames, {clip.sample_rate}});
  DeviceBuffer input(device, bytes.size()), clips(device, sizeof clip);
  mel.values.resize(static_cast<size_t>(mel.frames * mel.n_mels));
  const DeviceBuffer out(device, mel.values.size() * sizeof(float));
  input.upload(bytes);
  clips.upload(std::as_bytes(std::span(&clip, 1)));
  gpu_mel.run(input.data(), static_cast<const GpuClip*>(clips.data()), 1, false, out.data(), mel.frames,
              MelType::float32, 0.0F, nullptr);
  out.download(std::as_writable_bytes(std::span(mel.values)));
  return mel;
}

}  // namespace myxtts
