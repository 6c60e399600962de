// What Unicode 14 says about characters, from the utf8proc of third_party/ rather than a library of the machine: the
// same tokens everywhere. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace myxtts {

// Canonical composition (NFC): an e and its accent become é, marks get their one order. Throws Error on what is not
// UTF-8.
std::string to_nfc(std::string_view utf8);
std::u32string to_nfc(const std::u32string& letters);

// False for what no text should hold: control characters other than tab and newline, private use, surrogates,
// unassigned code points, noncharacters, and the mark of an earlier decoding mistake (U+FFFD).
bool is_text(char32_t letter);

// The one to four letters behind an Arabic presentation form such as U+FEFB (ﻻ), empty for every other character.
std::u32string presentation_form_letters(char32_t form);

}  // namespace myxtts
