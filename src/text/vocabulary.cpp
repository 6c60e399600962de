#include "text/vocabulary.h"

#include "base/error.h"
#include "base/json.h"
#include "text/utf8.h"

#include <algorithm>

namespace myxtts {
namespace {

using nlohmann::json;
constexpr int format_version = 1;
constexpr size_t most_symbols = 65536 - Vocabulary::first_symbol;

}  // namespace

Vocabulary::Vocabulary(const std::set<char32_t>& symbols) : symbols_(symbols.begin(), symbols.end()) {
  if (symbols_.size() > most_symbols) {
    reject_input("text", "a vocabulary of {} characters is too large, at most {} fit", symbols_.size(), most_symbols,
                 way_out("check the corpus for broken text"));
  }
}

std::vector<uint16_t> Vocabulary::encode(std::string_view text, bool blanks) const {
  std::vector<uint16_t> tokens;
  if (blanks) tokens.push_back(blank);
  for (const char32_t letter : decode_utf8(text)) {
    const auto found = std::ranges::lower_bound(symbols_, letter);
    if (found == symbols_.end() || *found != letter) {
      reject_input("text", "the vocabulary does not know '{}' (U+{:04X})", encode_utf8({letter}),
                   static_cast<uint32_t>(letter), way_out("take it out of the text or train with it"));
    }
    tokens.push_back(static_cast<uint16_t>(first_symbol + (found - symbols_.begin())));
    if (blanks) tokens.push_back(blank);
  }
  return tokens;
}

std::string Vocabulary::decode(std::span<const uint16_t> tokens) const {
  std::vector<char32_t> letters;
  for (const uint16_t token : tokens) {
    if (token < first_symbol) continue;
    if (token >= size()) {
      fail("text", "token {} is not in this vocabulary of {}", token, size(),
           way_out("use the vocabulary that made the tokens"));
    }
    letters.push_back(symbols_[token - first_symbol]);
  }
  return encode_utf8(letters);
}

std::string Vocabulary::to_json() const {
  json symbols = json::array();
  for (const char32_t symbol : symbols_) symbols.push_back(encode_utf8({symbol}));
  return json{{"version", format_version}, {"symbols", symbols}}.dump() + "\n";
}

Vocabulary Vocabulary::from_json(const std::string& text, const std::string& name) {
  const auto reject = [&](std::string_view why) {
    reject_input("text", "{} is not a vocabulary: {}", name, why,
                 way_out("use the file that was saved with the voice"));
  };
  const json saved = parse_json(text);
  if (!saved.is_object()) reject("it is not a JSON object");
  const auto version = saved.find("version"), symbols = saved.find("symbols");
  if (version == saved.end() || *version != format_version) reject("its version is not 1");
  if (symbols == saved.end() || !symbols->is_array()) reject("it has no list of symbols");
  std::set<char32_t> letters;
  for (const json& symbol : *symbols) {
    const std::vector<char32_t> one =
        symbol.is_string() ? decode_utf8(symbol.get<std::string>()) : std::vector<char32_t>{};
    if (one.size() != 1) reject("a symbol is not a single character");
    // Another order would change the token IDs.
    if (!letters.empty() && one[0] <= *letters.rbegin()) reject("its symbols are not in ascending order");
    letters.insert(one[0]);
  }
  return Vocabulary(letters);
}

}  // namespace myxtts
