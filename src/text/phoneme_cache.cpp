#include "text/phoneme_cache.h"

#include "base/files.h"
#include "base/json.h"
#include "base/lines.h"

namespace myxtts {

using nlohmann::json;

PhonemeCache read_phoneme_cache(const std::filesystem::path& file) {
  constexpr uint64_t max_bytes = uint64_t{1} << 32;
  PhonemeCache cache;
  std::error_code none;
  if (file.empty() || !std::filesystem::exists(file) || std::filesystem::file_size(file, none) > max_bytes)
    return cache;
  read_lines(file, [&](const TextLine& line) {
    const json entry = parse_json(line.text);
    const auto is_text = [&](const char* key) { return entry.contains(key) && entry[key].is_string(); };
    if (!is_text("language") || !is_text("text") || !is_text("ipa")) return;
    cache[{entry["language"], entry["text"]}] = entry["ipa"];
  });
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
