// Cache of pronunciations by language and text. Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace myxtts {

using PhonemeCache = std::map<std::pair<std::string, std::string>, std::string>;  // (language, text): IPA

// JSON lines {"language","text","ipa"}. Skips damaged lines; a missing file or one over 4 GiB is empty, because misses
// are recomputed.
PhonemeCache read_phoneme_cache(const std::filesystem::path& file);
void write_phoneme_cache(const std::filesystem::path& file, const PhonemeCache& cache);

}  // namespace myxtts
