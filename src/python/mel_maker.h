// Log-mels of samples that lie in memory, on the device where they lie: what myxtts.mel and MelSpectrogram call.
#pragma once

#include "features/mel.h"
#include "features/mel_gpu.h"
#include "python/shared_array.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <nanobind/nanobind.h>

namespace myxtts {

// Mono clips of equal length, one per row.
struct SampleRows {
  const std::byte* data = nullptr;
  int device = -1;
  SampleFormat format = SampleFormat::float_32;
  int64_t rows = 1, samples = 0;
  int64_t row_stride = 0, sample_stride = 1;  // in samples
};

// Owns tables and scratch memory for one convention, on each device that it was used on. Any thread.
class MelMaker {
 public:
  explicit MelMaker(const MelSpec& spec) : spec_(spec) {}

  const MelSpec& spec() const { return spec_; }

  // float32 [rows, frames, n_mels], done when it returns. `sample_rate`: of the samples.
  SharedArray compute(const SampleRows& samples, int sample_rate);

 private:
  struct OnGpu;
  SharedArray on_cpu(const SampleRows& samples, int sample_rate);
  SharedArray on_gpu(const SampleRows& samples, int sample_rate);

  const MelSpec spec_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MelCpu>> idle_;      // one is taken for the time of a call
  std::map<int, std::shared_ptr<OnGpu>> on_gpus_;  // by device
};

void bind_mel(nanobind::module_& module);

}  // namespace myxtts
