#include "session/torch/batch_size.h"

#include "base/files.h"
#include "base/memory.h"
#include "device/device.h"
#include "plan/shapes.h"
#include "settings/config_file.h"
#include "train/memory_plan.h"
#include "train/step_policy.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace myxtts {
namespace {

// A resumed run keeps the batch size it was trained with.
std::optional<int64_t> earlier_batch_size(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.yaml";
  if (!std::filesystem::exists(file)) return std::nullopt;
  constexpr uint64_t max_bytes = 1 << 20;
  return config_from_yaml(read_text_file(file, max_bytes), file.string()).data.batch_size.low;
}

}  // namespace

void settle_batch_size(Config& config, const Corpus& corpus, const Mode& mode, bool reset, int64_t ranks,
                       const SessionListener& listener) {
  IntRange& range = config.data.batch_size;
  if (range.fixed() || config.data.batch_frames > 0 || corpus.index.size() == 0) return;
  const auto earlier = reset ? std::nullopt : earlier_batch_size(config.training.checkpoint_dir);
  if (earlier && *earlier >= range.low && *earlier <= range.high) {
    listener.tell(fmt::format("batch size {} of {}-{}, as in the run so far", *earlier, range.low, range.high));
    range = {*earlier, *earlier};
    return;
  }
  if (config.training.target == "vocoder") {  // as published, whatever would fit
    constexpr int64_t usual = 16;
    const int64_t chosen = std::max(ranks, std::clamp(usual, range.low, range.high) / ranks * ranks);
    listener.tell(fmt::format("batch size {} of {}-{}", chosen, range.low, range.high));
    range = {chosen, chosen};
    return;
  }
  const bool gpu = mode.model_device >= 0;
  const StepPolicy policy = step_policy(config, gpu);
  const ShapePlan plan = plan_shapes(corpus.index.lengths(), config.data);
  StepMemory step;
  step.size = model_size(config.model.size);
  int64_t clips = 0;
  for (const Shape& shape : plan.shapes) {
    step.frames = std::max(step.frames, shape.mel_frames), step.tokens = std::max(step.tokens, shape.text_length);
    clips += static_cast<int64_t>(shape.clips.size());
  }
  const int64_t least = (range.low + ranks - 1) / ranks;  // rows of a rank
  const IntRange possible{least, std::max(least, std::min(range.high, clips) / ranks)};
  step.n_mels = corpus.mel.n_mels;
  step.half = policy.bfloat16;
  step.fused = policy.fused && (policy.bfloat16 || !gpu);
  const auto bytes = static_cast<double>(gpu ? device_memory(mode.model_device).free_bytes
                                             : host_memory().available_bytes / static_cast<uint64_t>(mode.processes));
  constexpr double share = 0.6;  // cached clips take up to a quarter, ready batches some more
  const int64_t rows = fitting_batch_size(possible, step, share * bytes), chosen = rows * ranks;
  listener.tell(fmt::format("batch size {} of {}-{}: a step takes about {:.1f} GB, {} has {:.1f} GB free", chosen,
                            range.low, range.high, step.bytes(rows) / 1e9, gpu ? "the GPU" : "the machine",
                            bytes / 1e9));
  range = {chosen, chosen};
}

}  // namespace myxtts
