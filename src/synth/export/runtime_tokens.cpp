#include "synth/export/runtime_tokens.h"

#include "synth/voice_description.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <map>

#include <fmt/format.h>

namespace myxtts {
namespace {

constexpr char32_t first_combining = 0x0300, last_combining = 0x036F;

// Numbers of base letters that the voice does not know, by the composed symbols that it does.
void add_base_letters(std::map<char32_t, int>& numbers) {
  const std::map<char32_t, int> known = numbers;
  for (char32_t base = U'a'; base <= U'z'; ++base) {
    if (known.contains(base)) continue;
    for (char32_t mark = first_combining; mark <= last_combining; ++mark) {
      const std::u32string composed = to_nfc(std::u32string{base, mark});
      const auto found = composed.size() == 1 ? known.find(composed.front()) : known.end();
      if (found != known.end()) numbers.emplace(base, found->second);
    }
  }
}

}  // namespace

std::string runtime_tokens(const Vocabulary& vocabulary) {
  std::map<char32_t, int> numbers;
  const auto number_of = [&](const std::string& symbol) { return vocabulary.encode(symbol, false).front(); };
  for (const char32_t symbol : vocabulary.symbols()) numbers[symbol] = number_of(encode_utf8({symbol}));
  add_base_letters(numbers);
  for (const char mark : {',', '.', ';', ':', '!', '?'}) {
    const std::string known = with_known_marks({mark}, vocabulary);
    if (!known.empty()) numbers.emplace(mark, number_of(known));
  }
  // The runtime wants its names of padding, beginning and end, and uses none of them here.
  for (const char32_t unused : {U'_', U'^', U'$'}) numbers.emplace(unused, Vocabulary::padding);
  std::string text;
  for (const auto& [symbol, number] : numbers) text += fmt::format("{} {}\n", encode_utf8({symbol}), number);
  return text;
}

}  // namespace myxtts
