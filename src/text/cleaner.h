// The text that a voice is trained on and asked to say, in one spelling: numbers, dates, abbreviations as words, one
// code point for what looks the same. Cleaning a cleaned text changes nothing. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace myxtts {

// `language` is a tag such as "en", "en-us" or "fa"; only its first part counts. English and Persian are cleaned in
// full. In every other language composition (NFC), spaces and invisible characters are put right and nothing else.
// Throws Error where the text is not UTF-8.
std::string clean_text(std::string_view text, std::string_view language);

}  // namespace myxtts
