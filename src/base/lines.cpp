#include "base/lines.h"

#include "base/files.h"

#include <algorithm>
#include <string>
#include <vector>

namespace myxtts {
namespace {

class LineReader {
 public:
  explicit LineReader(const std::function<void(const TextLine&)>& take) : take_(take) {}

  void add(std::string_view part) {
    const size_t room = max_line_bytes - line_.size();
    cut_ = cut_ || part.size() > room;
    line_.append(part.substr(0, room));
  }

  void end_line() {
    std::string_view text = line_;
    if (++number_ == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (!text.empty()) take_({text, number_, cut_});
    line_.clear(), cut_ = false;
  }

  bool begun() const { return !line_.empty(); }

 private:
  const std::function<void(const TextLine&)>& take_;
  std::string line_;
  int64_t number_ = 0;
  bool cut_ = false;
};

}  // namespace

uint64_t read_lines(const std::filesystem::path& path, const std::function<void(const TextLine&)>& take,
                    uint64_t from) {
  const ReadOnlyFile file(path);
  LineReader lines(take);
  std::vector<char> block(size_t{1} << 16);
  uint64_t whole = from;
  for (uint64_t at = from;;) {
    const size_t got = file.read_at(at, std::as_writable_bytes(std::span(block)));
    std::string_view left(block.data(), got);
    for (size_t end = left.find('\n'); end != std::string_view::npos; end = left.find('\n')) {
      lines.add(left.substr(0, end));
      lines.end_line();
      left.remove_prefix(end + 1);
      whole = at + got - left.size();
    }
    lines.add(left);
    at += got;
    if (got < block.size()) break;
  }
  if (lines.begun()) lines.end_line();
  return whole;
}

}  // namespace myxtts
