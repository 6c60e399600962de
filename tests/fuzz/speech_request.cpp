// What anybody may send to the server: the body of a request for speech, with a clip in base64.
#include "serve/speech_request.h"

#include "fuzz.h"

#include <cmath>

using namespace myxtts;

FUZZ_TARGET(input) {
  const RequestLimits limits{4096, 200, 1024, 30};
  const SpeechRequest request = parse_speech_request(fuzz::text_of(input), limits);
  fuzz::expect(!request.input.empty() && request.input.size() <= 4 * limits.text_letters);
  fuzz::expect(request.reference.size() <= limits.reference_bytes && std::isfinite(request.speed) && request.speed > 0);
}
