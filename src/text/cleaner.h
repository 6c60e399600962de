// Text normalisation for training and synthesis: numbers, dates and abbreviations as words, and one code point per
// character. Idempotent. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace myxtts {

// `language` is a tag such as "en", "en-us" or "fa"; only its first part counts. Other languages than English and
// Persian get NFC, white space and invisible characters only. Throws Error if the text is not UTF-8.
std::string clean_text(std::string_view text, std::string_view language);

}  // namespace myxtts
