#include "text/clauses.h"

#include "text/signs.h"
#include "text/utf8.h"

#include <algorithm>

namespace myxtts {
namespace {

struct Mark {
  char32_t letter;
  char token;
  bool always = false;  // ends a clause without a space behind it
};

constexpr Mark marks[] = {{U',', ','},        {U'.', '.'},        {U';', ';'},        {U':', ':'},
                          {U'!', '!'},        {U'?', '?'},        {U'،', ','},        {U'؛', ';'},
                          {U'؟', '?'},        {U'…', '.'},        {U'—', ',', true},  {U'–', ','},
                          {U'।', '.', true},  {U'。', '.', true}, {U'、', ',', true}, {U'，', ',', true},
                          {U'！', '!', true}, {U'？', '?', true}, {U'；', ';', true}, {U'：', ':', true}};

const Mark* mark_of(char32_t letter) {
  const auto* const found = std::ranges::find(marks, letter, &Mark::letter);
  return found == std::end(marks) ? nullptr : found;
}

// What may stand between a mark and the space behind it.
bool closes(char32_t letter) { return closing_signs.find(letter) != std::u32string_view::npos; }

}  // namespace

char clause_mark(char32_t letter) {
  const Mark* const mark = mark_of(letter);
  return mark == nullptr ? '\0' : mark->token;
}

std::vector<Clause> split_clauses(std::string_view text) {
  const std::vector<char32_t> letters = decode_utf8(text);
  std::vector<Clause> clauses;
  std::vector<char32_t> words;
  const auto end_clause = [&](char mark) {
    while (!words.empty() && is_space(words.back())) words.pop_back();
    if (!words.empty()) clauses.push_back({encode_utf8(words), mark});
    words.clear();
  };
  for (size_t i = 0; i < letters.size();) {
    const Mark* const mark = mark_of(letters[i]);
    size_t end = i;
    while (end < letters.size() && (mark_of(letters[end]) != nullptr || (end > i && closes(letters[end])))) ++end;
    if (mark != nullptr && (mark->always || end == letters.size() || is_space(letters[end]))) {
      end_clause(mark->token);
      i = end;
    } else {
      if (!is_space(letters[i]) || !words.empty()) words.push_back(letters[i]);
      ++i;
    }
  }
  end_clause(0);
  return clauses;
}

}  // namespace myxtts
