// UTF-8 decoding and encoding. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Throws Error at the first invalid byte, including overlong forms and surrogates.
std::vector<char32_t> decode_utf8(std::string_view text);
std::string encode_utf8(const std::vector<char32_t>& letters);

}  // namespace myxtts
