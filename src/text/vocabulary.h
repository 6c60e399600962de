// Maps characters or phonemes to token IDs. Saved with a voice.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Token 0 is padding, 1 the optional blank. Immutable; any thread.
class Vocabulary {
 public:
  static constexpr uint16_t padding = 0, blank = 1, first_symbol = 2;

  explicit Vocabulary(const std::set<char32_t>& symbols);  // sorted, so that equal sets give equal IDs

  size_t size() const { return first_symbol + symbols_.size(); }  // including padding and blank
  std::set<char32_t> symbols() const { return {symbols_.begin(), symbols_.end()}; }

  // Token IDs of a text, with blanks before, between and after them if `blanks`. Throws Error that names the first
  // unknown character as 'x' (U+0078).
  std::vector<uint16_t> encode(std::string_view text, bool blanks) const;

  std::string decode(std::span<const uint16_t> tokens) const;  // without padding and blanks

  // {"version":1,"symbols":["a",...]}. Rejects anything else with `name`, the file name.
  std::string to_json() const;
  static Vocabulary from_json(const std::string& text, const std::string& name);

 private:
  std::vector<char32_t> symbols_;  // sorted; the ID of symbols_[i] is first_symbol + i
};

}  // namespace myxtts
