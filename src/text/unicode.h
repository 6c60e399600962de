// What Unicode 14 says about characters, from the utf8proc of third_party/ rather than a library of the machine: the
// same tokens everywhere. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace myxtts {

// Canonical composition (NFC). Throws Error if the text is not UTF-8.
std::string to_nfc(std::string_view utf8);
std::u32string to_nfc(const std::u32string& letters);

// False for control characters except tab and newline, private use, surrogates, unassigned code points, noncharacters
// and the replacement character U+FFFD.
bool is_text(char32_t letter);

// The one to four letters of an Arabic presentation form such as U+FEFB (ﻻ); empty for other characters.
std::u32string presentation_form_letters(char32_t form);

}  // namespace myxtts
