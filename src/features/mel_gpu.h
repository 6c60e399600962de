// Log-mel on a GPU: turns a batch of raw clip bytes into a padded batch of log-mels, both in device memory, in a few
// kernel launches without host synchronisation. The result of a clip does not depend on the rest of the batch.
#pragma once

#include "audio/pcm.h"
#include "device/device.h"
#include "features/mel.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace myxtts {

// Location and format of a clip in the bytes of a batch.
struct GpuClip {
  uint64_t offset_bytes = 0;
  uint32_t samples = 0;  // per channel, at the source sample rate
  int32_t sample_rate = 0;
  int32_t channels = 1;
  SampleFormat format = SampleFormat::pcm_16;
};

enum class MelType { float32, bfloat16 };

struct MelGpuLimits {
  int clips = 1;                  // per batch
  int64_t samples = 0;            // per clip, at the sample rate of the preset
  int64_t frames = 0;             // per row of the output
  std::vector<int> sample_rates;  // allowed source rates, in addition to that of the preset
  bool operator==(const MelGpuLimits&) const = default;
};

// Owns tables and scratch memory, allocated once. Not thread-safe; all calls must use one stream.
class MelGpu {
 public:
  MelGpu(const MelSpec& spec, int device, const MelGpuLimits& limits);
  ~MelGpu();
  MelGpu(MelGpu&&) noexcept;

  // Asynchronous on `stream`. `bytes`, `clips` and `out` are device memory; `out` is [count, out_frames, n_mels],
  // filled up with `padding`. Truncates clips longer than out_frames. `plain` promises that every clip is mono PCM16 at
  // the rate of the preset, 2-byte aligned; the decode launch is then skipped.
  void run(const void* bytes, const GpuClip* clips, int count, bool plain, void* out, int64_t out_frames, MelType type,
           float padding, StreamHandle stream);

  // The samples that the last run() turned into mels, with its `bytes`, `clips` and `count`: mono at the rate of the
  // preset, float [count, out_samples], zeros after the end. Asynchronous on the same stream.
  void samples(const void* bytes, const GpuClip* clips, int count, float* out, int64_t out_samples,
               StreamHandle stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Computes the mel of one clip, from and to host memory. Synchronous; for the `mel` command and tests.
Mel mel_on_gpu(const MelSpec& spec, int device, std::span<const std::byte> bytes, const GpuClip& clip);

}  // namespace myxtts
