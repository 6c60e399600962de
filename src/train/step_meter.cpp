#include "train/step_meter.h"

#include "base/error.h"

#include <algorithm>

#include <fmt/format.h>

namespace myxtts {

void StepMeter::watch_gpu(int device, const std::function<void(const std::string&)>& warn) {
  busy_.emplace(device);
  try {
    readings_.emplace(GpuReadings::of_bus_id(device_bus_id(device)));
  } catch (const Error& error) {
    warn(fmt::format("the driver's own utilisation is not recorded: {}", error.what()));
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

void StepMeter::add_batch(int64_t clips, double audio_s, int64_t frames, int64_t true_frames) {
  sums_.clips += clips, sums_.audio_s += audio_s;
  sums_.frames += frames, sums_.true_frames += true_frames;
}

void StepMeter::begin_step(StreamHandle stream) {
  if (busy_) busy_->begin(stream);
}

void StepMeter::end_step(StreamHandle stream) {
  if (busy_) busy_->end(stream);
  ++sums_.steps;
}

void StepMeter::rest() {
  if (busy_) busy_->pause();
}

StepReport StepMeter::report(const LoaderStats& loader, const std::function<void()>& wait_for_device) {
  StepReport report;
  const auto steps = static_cast<double>(sums_.steps);
  double seconds = sums_.clock.seconds() - sums_.paused_s;
  if (busy_) {
    BusyClock::Time time = busy_->take();
    if (time.pieces == 0) wait_for_device(), time = busy_->take();
    report.gpu_busy = time.busy_ms / time.all_ms;
    seconds = steps * time.all_ms * 1e-3 / static_cast<double>(time.pieces);
  }
  if (readings_) {
    if (const auto percent = readings_->utilisation_percent()) report.gpu_utilisation = *percent / 100;
  }
  report.step_ms = seconds * 1e3 / steps, report.input_wait_ms = sums_.wait_s * 1e3 / steps;
  report.samples_per_s = static_cast<double>(sums_.clips) / seconds;
  report.audio_s_per_s = sums_.audio_s / seconds;
  report.padding = 1 - static_cast<double>(sums_.true_frames) / static_cast<double>(std::max<int64_t>(1, sums_.frames));
  report_loader(loader, report);
  begin(loader);
  return report;
}

void StepMeter::report_loader(const LoaderStats& loader, StepReport& report) const {
  const LoaderStats& before = sums_.loader;
  const double seconds = sums_.clock.seconds() * static_cast<double>(std::max<size_t>(1, loader.active_workers));
  const double busy_s = loader.rows_busy_s - before.rows_busy_s;
  const double read_s = loader.read_s - before.read_s, features_s = loader.features_s - before.features_s;
  report.loader_reading = read_s / seconds, report.loader_features = features_s / seconds;
  report.loader_decoding = std::max(0.0, busy_s - read_s - features_s) / seconds;
  report.loader_ready = static_cast<int64_t>(loader.ready_batches);
}

}  // namespace myxtts
