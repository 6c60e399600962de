#include "corpus/metadata.h"

#include "base/error.h"

#include <fstream>

namespace myxtts {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  for (size_t at = 0;;) {
    const size_t pipe = line.find('|', at);
    fields.push_back(line.substr(at, pipe - at));
    if (pipe == std::string::npos) return fields;
    at = pipe + 1;
  }
}

}  // namespace

std::vector<MetadataRow> read_metadata(const std::filesystem::path& corpus, const std::string& format) {
  if (!std::filesystem::is_directory(corpus)) reject_input("corpus", "{} is not a folder", corpus.string());
  const std::filesystem::path path = corpus / "metadata.csv";
  std::ifstream file(path, std::ios::binary);
  if (!file) reject_input("corpus", "{} has no metadata.csv; each of its lines is {}", corpus.string(), format);
  std::vector<MetadataRow> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string> fields = split(line);
    const auto field = [&](size_t i) { return i < fields.size() ? fields[i] : std::string(); };
    if (format == "id|speaker|text") {
      rows.push_back({number, field(0), field(1), field(2)});
    } else {
      rows.push_back({number, field(0), "", fields.size() > 2 && !fields[2].empty() ? fields[2] : field(1)});
    }
  }
  if (rows.empty()) reject_input("corpus", "{} has no rows", path.string());
  return rows;
}

}  // namespace myxtts
