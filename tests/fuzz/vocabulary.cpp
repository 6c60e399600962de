// Vocabularies, and texts as their tokens.
#include "text/vocabulary.h"

#include "fuzz.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const Vocabulary vocabulary = Vocabulary::from_json(std::string(fuzz::text_of(input)), "input");
  fuzz::expect(Vocabulary::from_json(vocabulary.to_json(), "again").to_json() == vocabulary.to_json());
  const std::vector<uint16_t> tokens = vocabulary.encode("abc", true);
  fuzz::expect(vocabulary.decode(tokens) == "abc");
}
