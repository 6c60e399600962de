// Characters (or phonemes) and their numbers, saved with a voice so that it always reads the same.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Number 0 is padding, 1 the optional blank. Immutable once made; any thread.
class Vocabulary {
 public:
  static constexpr uint16_t padding = 0, blank = 1, first_symbol = 2;

  explicit Vocabulary(const std::set<char32_t>& symbols);  // sorted, so that the same set gives the same numbers

  size_t size() const { return first_symbol + symbols_.size(); }  // with padding and blank
  std::set<char32_t> symbols() const { return {symbols_.begin(), symbols_.end()}; }

  // Tokens of a text, with a blank before, between and after where `blanks`. Throws Error naming the first character
  // that it does not know as 'x' (U+0078).
  std::vector<uint16_t> encode(std::string_view text, bool blanks) const;

  std::string decode(std::span<const uint16_t> tokens) const;  // padding and blanks left out

  // {"version":1,"symbols":["a",...]}. A text that is not one is rejected naming `name`, the file it came from.
  std::string to_json() const;
  static Vocabulary from_json(const std::string& text, const std::string& name);

 private:
  std::vector<char32_t> symbols_;  // sorted; the number of symbols_[i] is first_symbol + i
};

}  // namespace myxtts
