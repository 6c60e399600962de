#include "text/phoneme_cache.h"

#include "base/files.h"
#include "base/json.h"

#include <limits>
#include <sstream>

namespace myxtts {

using nlohmann::json;

PhonemeCache read_phoneme_cache(const std::filesystem::path& file) {
  PhonemeCache cache;
  if (file.empty() || !std::filesystem::exists(file)) return cache;
  std::istringstream lines(read_text_file(file, std::numeric_limits<uint64_t>::max()));
  for (std::string line; std::getline(lines, line);) {
    const json entry = parse_json(line);
    const auto is_text = [&](const char* key) { return entry.contains(key) && entry[key].is_string(); };
    if (!entry.is_object() || !is_text("language") || !is_text("text") || !is_text("ipa")) continue;
    cache[{entry["language"], entry["text"]}] = entry["ipa"];
  }
  return cache;
}

void write_phoneme_cache(const std::filesystem::path& file, const PhonemeCache& cache) {
  if (file.empty()) return;
  std::string lines;
  for (const auto& [key, ipa] : cache) {
    lines += json{{"language", key.first}, {"text", key.second}, {"ipa", ipa}}.dump() + "\n";
  }
  write_file_atomically(file, lines);
}

}  // namespace myxtts
