// FLAC, MP3, Ogg Vorbis and Opus, as libsndfile reads them for us.
#include "audio/codec.h"

#include "fuzz.h"

#include <cmath>
#include <cstring>

using namespace myxtts;

FUZZ_TARGET(input) {
  const ByteSource source{"input", input.size(), [input](uint64_t offset, std::span<std::byte> into) -> size_t {
                            if (offset >= input.size()) return 0;
                            const size_t count = std::min<size_t>(into.size(), input.size() - offset);
                            std::memcpy(into.data(), input.data() + offset, count);
                            return count;
                          }};
  if (looks_like_wav(source)) return;
  const AudioInfo info = codec_info(source);
  fuzz::expect(info.sample_rate > 0 && info.channels > 0);
  constexpr uint64_t enough = 1 << 16;
  uint64_t count = 0;
  const TakeSamples take = [&](std::span<const float> samples) {
    for (const float sample : samples) fuzz::expect(std::isfinite(sample));
    count += samples.size();
    return true;
  };
  codec_read_mono(source, 0, enough, take);
  fuzz::expect(count <= enough);
  codec_read_mono(source, info.frames / 2, 100, take);
}
