// A mel through a trained vocoder, where the program was built with libtorch.
#pragma once

#include "features/mel.h"
#include "features/mel_spec.h"

#include <filesystem>
#include <vector>

namespace myxtts {

// On the CPU. Throws Error if the vocoder cannot be read, was trained on another convention, or there is no libtorch.
std::vector<float> vocode(const std::filesystem::path& vocoder, const MelSpec& spec, const Mel& mel);

}  // namespace myxtts
