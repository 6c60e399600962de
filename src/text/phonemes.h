// How a text is pronounced, from espeak-ng, a program of its own: nothing of it is linked, and it may be missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace myxtts {

bool phonemes_available();

// IPA of each text, without punctuation. Many texts go to one process, on `threads` threads; what was answered is
// remembered in `cache_file` (empty: not remembered), so that a text is asked for once. `progress(done, total)` counts
// the texts that had to be asked for; it is called from one thread at a time. `language` is one of `espeak-ng
// --voices`. Throws Error where espeak-ng is missing, does not know the language or fails; what it answered until then
// is kept.
std::vector<std::string> to_phonemes(const std::vector<std::string>& texts, const std::string& language,
                                     const std::filesystem::path& cache_file, size_t threads,
                                     const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace myxtts
