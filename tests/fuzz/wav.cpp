// The WAV parser, and reading samples through it.
#include "audio/clip.h"
#include "fuzz.h"

#include <cmath>

using namespace myxtts;

FUZZ_TARGET(input) {
  const std::filesystem::path path = fuzz::file_of(input);
  const AudioInfo info = read_clip_info(path);
  fuzz::expect(info.sample_rate > 0 && info.channels > 0 && info.frames <= input.size());
  const Clip clip = read_clip(path);
  fuzz::expect(clip.samples.size() == info.frames);
  for (const float sample : clip.samples) fuzz::expect(std::isfinite(sample));
  const Clip part = read_clip(path, info.frames / 2, 3);
  fuzz::expect(part.samples.size() <= 3);
  const RawClip raw = read_raw_clip(path);
  fuzz::expect(raw.bytes.size() <= input.size());
  std::vector<std::byte> bytes(raw.bytes.size());
  const WavLayout layout = read_wav_part(path, 0, raw.layout.frames, bytes);
  fuzz::expect(bytes == raw.bytes && layout.frames == raw.layout.frames);
}

// Only what begins as a WAV: the rest is the codecs' business.
extern "C" int LLVMFuzzerCustomMutator(uint8_t*, size_t, size_t, unsigned);
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" int LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size >= 12) {
    std::copy_n("RIFF", 4, data);
    std::copy_n("WAVE", 4, data + 8);
  }
  return static_cast<int>(size);
}
