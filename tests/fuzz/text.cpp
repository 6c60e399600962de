// What users write: cleaned, cut into sentences, in English and in Persian.
#include "fuzz.h"
#include "text/cleaner.h"
#include "text/sentences.h"
#include "text/utf8.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const std::string language = fuzz::take_byte(input) % 2 == 0 ? "en" : "fa";
  const std::string text(fuzz::text_of(input));
  const std::string clean = clean_text(text, language);
  fuzz::expect(encode_utf8(decode_utf8(clean)) == clean);
  constexpr size_t longest = 40;
  for (const std::string& sentence : split_sentences(text, longest)) fuzz::expect(!sentence.empty());
}
