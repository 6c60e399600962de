#include "synth/export/runtime_lexicon.h"

#include "base/workers.h"
#include "text/clauses.h"
#include "text/cleaner.h"
#include "text/phonemes.h"
#include "text/utf8.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace myxtts {
namespace {

// sherpa-onnx 2.0 forgets punctuation and spaces unless some entry has a token of several letters. No text has this
// one.
constexpr char first_line[] = "myxttslexicon ipa\n";

using Pronunciations = std::map<std::string, std::map<std::string, int>>;  // word to IPA to how often

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The runtime looks words up in lower case.
std::string lower_case(std::string word) {
  std::ranges::transform(word, word.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return word;
}

std::vector<std::string> phonemes_of(const std::vector<std::string>& texts, const std::string& language) {
  return to_phonemes(texts, language, {}, available_cores(), {});
}

Pronunciations count(const std::vector<std::string>& texts, const std::string& language) {
  std::vector<std::string> clauses;
  for (const std::string& text : texts) {
    for (const Clause& clause : split_clauses(clean_text(text, language))) clauses.push_back(clause.words);
  }
  const std::vector<std::string> ipa = phonemes_of(clauses, language);
  Pronunciations found;
  for (size_t i = 0; i < clauses.size(); ++i) {
    const std::vector<std::string> words = split_at_spaces(clauses[i]), spoken = split_at_spaces(ipa[i]);
    for (size_t j = 0; j < words.size(); ++j) {
      auto& of_word = found[lower_case(words[j])];
      // espeak-ng joins some neighbours into one word; such clauses tell nothing.
      if (words.size() == spoken.size()) ++of_word[spoken[j]];
    }
  }
  return found;
}

}  // namespace

std::string runtime_lexicon(const std::vector<std::string>& texts, const std::string& language,
                            const Vocabulary& vocabulary) {
  Pronunciations found = count(texts, language);
  std::vector<std::string> alone;
  for (const auto& [word, ipa] : found) {
    if (ipa.empty()) alone.push_back(word);
  }
  const std::vector<std::string> spoken = phonemes_of(alone, language);
  for (size_t i = 0; i < alone.size(); ++i) found[alone[i]] = {{spoken[i], 1}};
  const std::set<char32_t> known = vocabulary.symbols();
  std::string lexicon = first_line;
  for (const auto& [word, ipa] : found) {
    const auto often = std::ranges::max_element(ipa, {}, [](const auto& one) { return one.second; });
    std::string phonemes;
    for (const char32_t phoneme : decode_utf8(often->first)) {
      if (phoneme != U' ' && known.contains(phoneme)) phonemes += fmt::format(" {}", encode_utf8({phoneme}));
    }
    if (!phonemes.empty()) lexicon += fmt::format("{}{}\n", word, phonemes);
  }
  return lexicon;
}

}  // namespace myxtts
