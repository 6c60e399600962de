// A voice or a vocoder as a file to share: what synthesis and `train --from` need, in bfloat16. No optimiser, no
// discriminators: an eighth of a checkpoint, or less.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace myxtts {

struct SharedFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
};

// Writes DIR/best.safetensors, and DIR/vocoder.safetensors if a vocoder is named or lies beside the voice; of a vocoder
// the latter alone. Existing files of these names are replaced. Throws Error.
std::vector<SharedFile> share_voice(const std::filesystem::path& voice, const std::filesystem::path& vocoder,
                                    const std::filesystem::path& folder);

}  // namespace myxtts
