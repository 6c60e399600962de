#include "features/mel_gpu.h"

#include "base/error.h"

namespace myxtts {
namespace {

[[noreturn]] void missing() {
  reject_input("mel", "this build has no CUDA", way_out("install the CUDA toolkit and rebuild, or use --device cpu"));
}

}  // namespace

struct MelGpu::State {};
MelGpu::MelGpu(const MelSpec&, int, const MelGpuLimits&) { missing(); }
MelGpu::~MelGpu() = default;
MelGpu::MelGpu(MelGpu&&) noexcept = default;
void MelGpu::run(const void*, const GpuClip*, int, bool, void*, int64_t, MelType, float, StreamHandle) { missing(); }
void MelGpu::samples(const void*, const GpuClip*, int, float*, int64_t, StreamHandle) { missing(); }
Mel mel_on_gpu(const MelSpec&, int, std::span<const std::byte>, const GpuClip&) { missing(); }

}  // namespace myxtts
