// Speed of a run: time, input wait, padding and the GPU's work over the steps since it last reported. The thread that
// trains.
#pragma once

#include "base/clock.h"
#include "device/device.h"
#include "device/gpu_readings.h"
#include "loader/loader.h"
#include "train/metrics.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace myxtts {

class StepMeter {
 public:
  // Measures the GPU's work too; warns about what cannot be read.
  void watch_gpu(int device, const std::function<void(const std::string&)>& warn);

  // Sums begin at zero.
  void begin(const LoaderStats& loader);

  void waited_for_input(double seconds);
  void waited_for_ranks(double seconds) { sums_.ranks_wait_s += seconds; }
  double ranks_wait_ms() const {  // per step, since the last report
    return sums_.ranks_wait_s * 1e3 / static_cast<double>(sums_.steps);
  }
  // `frames`: of the padded batch.
  void add_batch(const Batch& batch, int64_t frames);
  // Around the work of each batch, so that waiting for the next one of a step is not counted as busy.
  void begin_work(StreamHandle stream);
  void end_work(StreamHandle stream);
  void end_step() { ++sums_.steps; }
  int64_t steps() const { return sums_.steps; }
  double waited_s() const { return waited_s_; }  // since the first step

  // The device's idle time until the next step is not counted.
  void exclude_idle();

  // Time that does not count as training, as long as it lives. One after another, never one in another.
  class Pause {
   public:
    explicit Pause(StepMeter& meter) : meter_(meter) {}
    ~Pause() { meter_.sums_.paused_s += clock_.seconds(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    StepMeter& meter_;
    Stopwatch clock_;
  };

  // Adds what was measured to the metrics, and begins anew. If the device has not finished a single step, it is waited
  // for.
  void report(const LoaderStats& loader, const std::function<void()>& wait_for_device, StepMetrics& metrics);

 private:
  struct Sums {
    Stopwatch clock;
    int64_t steps = 0, batches = 0, clips = 0, frames = 0, valid_frames = 0;
    double wait_s = 0, ranks_wait_s = 0, audio_s = 0, paused_s = 0;
    LoaderStats loader;  // when they began
  };

  void report_loader(const LoaderStats& loader, StepMetrics& metrics) const;

  Sums sums_;
  double waited_s_ = 0;
  std::optional<BusyClock> busy_;
  std::optional<GpuReadings> readings_;
};

}  // namespace myxtts
