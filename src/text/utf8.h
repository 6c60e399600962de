// UTF-8 to code points and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Throws Error at the first byte that is not UTF-8 (overlong forms and surrogates included).
std::vector<char32_t> decode_utf8(std::string_view text);
std::string encode_utf8(const std::vector<char32_t>& letters);

}  // namespace myxtts
