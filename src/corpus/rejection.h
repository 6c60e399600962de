// Why a row or a clip of a corpus is not used: a code for programs, a sentence for users.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace myxtts {

enum class Rejection {
  missing,            // there is no such file
  unreadable,         // the file cannot be decoded
  no_samples,         // it can, but holds nothing
  silent,             // no sample is above -60 dB
  too_long,           // for data.max_text_length or data.max_mel_frames
  too_short,          // fewer mel frames than tokens
  wrong_duration,     // not as long as the manifest says
  bad_row,            // the row lacks a field, or its id or path cannot be used
  bad_text,           // not UTF-8
  empty_text,         // before or after cleaning
  unknown_character,  // not text, or not in the vocabulary
  no_phonemes,        // espeak-ng has none for the text
  duplicate_id,
  outside,  // of the corpus' folder
};

// As JSON and the index have it: "too_long".
const char* name_of(Rejection code);
std::optional<Rejection> rejection_named(std::string_view name);

struct RejectionReason {
  Rejection code = Rejection::bad_row;
  std::string text;  // the sentence
};

}  // namespace myxtts
