// A trained voice as a file: a safetensors checkpoint, of which synthesis needs the description in the metadata and the
// EMA weights (`average.*`). Training reads and writes the rest (train/checkpoint.h).
#pragma once

#include "model/parameters.h"
#include "synth/voice_description.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

constexpr int checkpoint_version = 1;

// Checks that the file is a checkpoint of this program and version; returns its metadata.
std::map<std::string, std::string> read_checkpoint_metadata(const std::filesystem::path& path);

// Of a voice; of anything else it throws Error.
VoiceDescription read_voice_description(const std::filesystem::path& path);
// Also of a vocoder, which has settings, mel statistics and no texts.
VoiceDescription read_description(const std::filesystem::path& path);

bool has_ema_weights(const std::filesystem::path& path, const ParameterLayout& layout);
// Verified whole. Flat, float, on the CPU.
at::Tensor load_ema_weights(const std::filesystem::path& path, const ParameterLayout& layout);

// `step-*.safetensors` of a folder, in the order of their steps.
std::vector<std::filesystem::path> step_checkpoints(const std::filesystem::path& folder);

// The newest that is whole; `warn` is called for each that is not.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder,
                                                       const std::function<void(const std::string&)>& warn);

// A checkpoint, or the best one of a folder of checkpoints, or else its newest. A name alone, such as `base`, is that
// of a voice that ships with the program, unless there is a file or folder of that name here.
std::filesystem::path find_voice(const std::filesystem::path& file_or_folder);

}  // namespace myxtts
