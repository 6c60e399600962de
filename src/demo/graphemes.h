// How each letter of the demo corpus sounds: one row a grapheme, so that text and audio are truly related and a model
// can learn the alignment. It is no phonology of English or Persian, only a sound of its own for every letter.
#pragma once

namespace myxtts {

struct Grapheme {
  char32_t letter;
  float formant_hz[3];
  float voicing;  // 0 whispers, 1 is fully voiced
  float noise;    // breath or friction
  float closure;  // share of its time that is silent, before a stop bursts
  float duration_ms;
};

// Letters of both languages, space, half-space and punctuation; capitals sound as small letters. Null when unknown.
const Grapheme* find_grapheme(char32_t letter);

}  // namespace myxtts
