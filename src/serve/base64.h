// Base64 as RFC 4648 has it. Pure function; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace myxtts {

// The bytes; nothing if `text` is not base64: another character, a line break, or padding that is missing.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace myxtts
