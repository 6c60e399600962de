#include "audio/clip.h"

#include "base/error.h"
#include "base/files.h"

#include <utility>

namespace myxtts {
namespace {

ByteSource bytes_of(const ReadOnlyFile& file) {
  if (file.size_bytes() == 0) fail("audio", "{} is empty (at byte 0)", file.path().string());
  return {file.path().string(), file.size_bytes(),
          [&file](uint64_t offset, std::span<std::byte> into) { return file.read_at(offset, into); }};
}

const char* name_of(SampleFormat format) {
  static const char* const names[] = {"wav pcm_u8",   "wav pcm_16",   "wav pcm_24", "wav pcm_32",
                                      "wav float_32", "wav float_64", "wav a_law",  "wav mu_law"};
  return names[static_cast<int>(format)];
}

std::vector<float> read_wav_mono(const ByteSource& source, const WavLayout& layout, uint64_t first, uint64_t count) {
  first = std::min(first, layout.frames);
  count = std::min(count, layout.frames - first);
  const auto frame_bytes = static_cast<uint64_t>(layout.frame_bytes());
  std::vector<float> samples(count);
  constexpr uint64_t block_bytes = 1 << 16;
  const uint64_t frames_at_once = std::max<uint64_t>(1, block_bytes / frame_bytes);
  std::vector<std::byte> block(frames_at_once * frame_bytes);
  for (uint64_t done = 0; done < count;) {
    const uint64_t frames = std::min(frames_at_once, count - done);
    const uint64_t offset = layout.data_offset_bytes + (first + done) * frame_bytes;
    const std::span bytes = std::span(block).first(frames * frame_bytes);
    if (source.read_at(offset, bytes) != bytes.size())
      fail("audio", "{} was cut short (at byte {})", source.name, offset);
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    for (uint64_t i = 0; i < frames; ++i) {
      samples[done + i] = mono_value(layout.format, layout.channels, at + i * frame_bytes);
    }
    done += frames;
  }
  return samples;
}

}  // namespace

AudioInfo read_clip_info(const std::filesystem::path& path) {
  const ReadOnlyFile file(path);
  const ByteSource source = bytes_of(file);
  if (!looks_like_wav(source)) return codec_info(source);
  const WavLayout layout = parse_wav(source);
  return {name_of(layout.format), layout.sample_rate, layout.channels, layout.frames};
}

Clip read_clip(const std::filesystem::path& path, uint64_t first, uint64_t count) {
  const ReadOnlyFile file(path);
  const ByteSource source = bytes_of(file);
  if (!looks_like_wav(source)) {
    const int sample_rate = codec_info(source).sample_rate;
    return {sample_rate, codec_read_mono(source, first, count)};
  }
  const WavLayout layout = parse_wav(source);
  return {layout.sample_rate, read_wav_mono(source, layout, first, count)};
}

RawClip read_raw_clip(const std::filesystem::path& path) {
  const ReadOnlyFile file(path);
  const ByteSource source = bytes_of(file);
  RawClip raw;
  if (!looks_like_wav(source)) {
    const Clip clip = read_clip(path);
    const std::span bytes = std::as_bytes(std::span(clip.samples));
    raw.layout = {SampleFormat::float_32, 1, clip.sample_rate, 0, clip.samples.size()};
    raw.bytes.assign(bytes.begin(), bytes.end());
    return raw;
  }
  raw.layout = parse_wav(source);
  raw.bytes.resize(raw.layout.frames * static_cast<uint64_t>(raw.layout.frame_bytes()));
  if (source.read_at(std::exchange(raw.layout.data_offset_bytes, 0), raw.bytes) != raw.bytes.size()) {
    fail("audio", "{} was cut short (at byte {})", source.name, file.size_bytes());
  }
  return raw;
}

}  // namespace myxtts
