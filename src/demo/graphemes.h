// Acoustic parameters per grapheme of the demo corpus, so that a model can learn the alignment. Not a phonology of
// English or Persian: every letter just has a distinct sound.
#pragma once

namespace myxtts {

struct Grapheme {
  char32_t letter;
  float formant_hz[3];
  float voicing;  // 0: whisper, 1: fully voiced
  float noise;    // breath or friction
  float closure;  // silent share of the duration, before a stop burst
  float duration_ms;
};

// Letters of both languages, space, half-space and punctuation; capitals sound as small letters. Null if unknown.
const Grapheme* find_grapheme(char32_t letter);

}  // namespace myxtts
