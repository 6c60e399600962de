#include "text/utf8.h"

#include "base/error.h"

#include <utf8proc.h>

namespace myxtts {

std::vector<char32_t> decode_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  std::vector<char32_t> letters;
  for (utf8proc_ssize_t at = 0, length = 0; at < size; at += length) {
    utf8proc_int32_t letter = 0;
    length = utf8proc_iterate(bytes + at, size - at, &letter);
    if (length < 1) reject_input("text", "byte {} of the text is not UTF-8", at);
    letters.push_back(static_cast<char32_t>(letter));
  }
  return letters;
}

std::string encode_utf8(const std::vector<char32_t>& letters) {
  std::string text;
  for (const char32_t letter : letters) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(letter), bytes);
    text.append(bytes, bytes + length);
  }
  return text;
}

}  // namespace myxtts
