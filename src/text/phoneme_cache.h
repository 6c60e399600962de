// Pronunciations that were asked for before, by language and text. Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace myxtts {

using PhonemeCache = std::map<std::pair<std::string, std::string>, std::string>;  // (language, text): IPA

// One JSON object {"language","text","ipa"} a line. A damaged line is skipped and a missing file is empty: what is not
// found is asked for again.
PhonemeCache read_phoneme_cache(const std::filesystem::path& file);
void write_phoneme_cache(const std::filesystem::path& file, const PhonemeCache& cache);

}  // namespace myxtts
