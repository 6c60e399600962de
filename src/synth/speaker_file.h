// A speaker's vector as a small file, NAME.speaker: safetensors with one tensor, `speaker`. It belongs to the voice
// whose reference encoder made it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace myxtts {

struct SpeakerFile {
  std::vector<float> vector;
  std::string voice;  // fingerprint of the voice that it was made with
};

void write_speaker(const std::filesystem::path& path, const SpeakerFile& speaker);
// Throws Error if it is not such a file.
SpeakerFile read_speaker(const std::filesystem::path& path);

// Between the speakers: their mean, of the length of one. They are of one size, and there is at least one.
std::vector<float> mixed(const std::vector<std::vector<float>>& vectors);

}  // namespace myxtts
