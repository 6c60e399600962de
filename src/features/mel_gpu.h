// Log-mel on a GPU: a batch of clips as raw bytes in device memory becomes a padded batch of log-mels in device memory,
// in one short sequence of launches and without a word to the host. A clip's result depends on nothing but the clip:
// not on its neighbours, the batch's shape or the run.
#pragma once

#include "audio/pcm.h"
#include "device/device.h"
#include "features/mel.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace myxtts {

// Where a clip's samples lie in the batch's bytes, and what they are.
struct GpuClip {
  uint64_t offset_bytes = 0;
  uint32_t samples = 0;  // per channel, at the clip's own rate
  int32_t sample_rate = 0;
  int32_t channels = 1;
  SampleFormat format = SampleFormat::pcm_16;
};

enum class MelType { float32, bfloat16 };

struct MelGpuLimits {
  int clips = 1;                  // in a batch
  int64_t samples = 0;            // in a clip, at the preset's rate
  int64_t frames = 0;             // in a row of the output
  std::vector<int> sample_rates;  // that clips may have, beside the preset's own
};

// Owns its tables and scratch memory, made once. One batch at a time: calls belong on one stream.
class MelGpu {
 public:
  MelGpu(const MelSpec& spec, int device, const MelGpuLimits& limits);
  ~MelGpu();
  MelGpu(MelGpu&&) noexcept;

  // `bytes`, `clips` and `out` are device memory; `out` is [count, out_frames, n_mels], and what no clip fills becomes
  // `padding`. Clips longer than out_frames are cut off. `plain` promises that every clip is mono PCM16 at the preset's
  // rate, 2-byte aligned: the launch that decodes the others is then left out.
  void run(const void* bytes, const GpuClip* clips, int count, bool plain, void* out, int64_t out_frames, MelType type,
           float padding, StreamHandle stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One clip from host memory to a mel in host memory, for the `mel` command and for tests.
Mel mel_on_gpu(const MelSpec& spec, int device, std::span<const std::byte> bytes, const GpuClip& clip);

}  // namespace myxtts
