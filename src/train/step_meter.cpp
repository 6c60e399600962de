#include "train/step_meter.h"

#include "base/error.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace myxtts {

void StepMeter::watch_gpu(int device, const std::function<void(const std::string&)>& warn) {
  busy_.emplace(device);
  try {
    readings_.emplace(GpuReadings::of_bus_id(device_bus_id(device)));
  } catch (const Error& error) {
    warn(fmt::format("the driver's own utilisation is not logged: {}", error.what()));
  }
}

void StepMeter::begin(const LoaderStats& loader) {
  sums_ = {};
  sums_.loader = loader;
}

void StepMeter::waited_for_input(double seconds) {
  sums_.wait_s += seconds;
  waited_s_ += seconds;
}

void StepMeter::add_batch(const Batch& batch, int64_t frames) {
  sums_.clips += batch.rows(), sums_.audio_s += batch.seconds;
  sums_.frames += frames, sums_.valid_frames += batch.valid_frames();
}

void StepMeter::begin_work(StreamHandle stream) {
  if (busy_) busy_->begin(stream);
}

void StepMeter::end_work(StreamHandle stream) {
  if (busy_) busy_->end(stream);
  ++sums_.batches;
}

void StepMeter::exclude_idle() {
  if (busy_) busy_->pause();
}

void StepMeter::report(const LoaderStats& loader, const std::function<void()>& wait_for_device, StepMetrics& metrics) {
  const auto steps = static_cast<double>(sums_.steps);
  double seconds = sums_.clock.seconds() - sums_.paused_s;
  double gpu_busy = std::numeric_limits<double>::quiet_NaN();  // no GPU
  if (busy_) {
    BusyClock::Time time = busy_->take();
    if (time.pieces == 0) wait_for_device(), time = busy_->take();
    const double per_piece = static_cast<double>(time.pieces) / static_cast<double>(sums_.batches);
    // While ranks wait for each other within a piece of work, the GPU is idle.
    gpu_busy = std::max(0.0, time.busy_ms - sums_.ranks_wait_s * 1e3 * per_piece) / time.all_ms;
    seconds = static_cast<double>(sums_.batches) * time.all_ms * 1e-3 / static_cast<double>(time.pieces);
  }
  metrics.add("step_ms", "speed/step_ms", seconds * 1e3 / steps);
  metrics.add("input_wait_ms", "speed/input_wait_ms", sums_.wait_s * 1e3 / steps);
  metrics.add("gpu_busy", "speed/gpu_busy", gpu_busy);
  if (readings_) {
    if (const auto percent = readings_->utilisation_percent()) {
      metrics.add("gpu_utilisation", "speed/gpu_utilisation", *percent / 100);
    }
  }
  metrics.add("samples_per_s", "speed/samples_per_s", static_cast<double>(sums_.clips) / seconds);
  metrics.add("audio_s_per_s", "speed/audio_s_per_s", sums_.audio_s / seconds);
  const auto frames = static_cast<double>(std::max<int64_t>(1, sums_.frames));
  metrics.add("padding", "shapes/padding", 1 - static_cast<double>(sums_.valid_frames) / frames);
  report_loader(loader, metrics);
  begin(loader);
}

// Shares of the workers' time, and the batches that are ready now.
void StepMeter::report_loader(const LoaderStats& loader, StepMetrics& metrics) const {
  const LoaderStats& before = sums_.loader;
  const double seconds = sums_.clock.seconds() * static_cast<double>(std::max<size_t>(1, loader.active_workers));
  const double busy_s = loader.rows_busy_s - before.rows_busy_s;
  const double read_s = loader.read_s - before.read_s, features_s = loader.features_s - before.features_s;
  metrics.add("loader_reading", "", read_s / seconds);
  metrics.add("loader_decoding", "", std::max(0.0, busy_s - read_s - features_s) / seconds);
  metrics.add("loader_features", "", features_s / seconds);
  metrics.add_count("loader_ready", "", static_cast<int64_t>(loader.ready_batches));
}

}  // namespace myxtts
