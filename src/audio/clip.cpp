#include "audio/clip.h"

#include "base/error.h"
#include "base/files.h"

#include <utility>

namespace myxtts {
namespace {

// Opens the file of a clip as a byte source, which borrows the file.
class OpenClip {
 public:
  explicit OpenClip(const ClipPlace& place) : file_(place.path, place.root.get()) {
    source.name = place.name();
    source.size_bytes = place.part ? place.bytes : file_.size_bytes();
    if (source.size_bytes == 0)
      fail_as(ErrorCode::unreadable, "audio", "{} is empty (at byte {})", source.name, at_byte(0));
    if (!place.part && place.bytes != 0 && place.bytes != file_.size_bytes()) {
      fail_as(ErrorCode::changed, "audio", "{} has {} bytes, but had {} when the corpus was prepared", source.name,
              file_.size_bytes(), place.bytes);
    }
    if (place.first_byte > file_.size_bytes() || source.size_bytes > file_.size_bytes() - place.first_byte) {
      fail_as(ErrorCode::unreadable, "audio", "{} was cut short (at byte {})", source.name,
              at_byte(file_.size_bytes()));
    }
    source.read_at = [this, first = place.first_byte](uint64_t offset, std::span<std::byte> into) -> size_t {
      if (offset >= source.size_bytes) return 0;
      return file_.read_at(first + offset, into.first(std::min<uint64_t>(into.size(), source.size_bytes - offset)));
    };
  }
  OpenClip(const OpenClip&) = delete;
  OpenClip& operator=(const OpenClip&) = delete;

  ByteSource source;

 private:
  ReadOnlyFile file_;
};

const char* name_of(SampleFormat format) {
  static const char* const names[] = {"wav pcm_u8",   "wav pcm_16",   "wav pcm_24", "wav pcm_32",
                                      "wav float_32", "wav float_64", "wav a_law",  "wav mu_law"};
  return names[static_cast<int>(format)];
}

void read_wav_mono(const ByteSource& source, const WavLayout& layout, uint64_t first, uint64_t count,
                   const TakeSamples& take) {
  first = std::min(first, layout.frames);
  count = std::min(count, layout.frames - first);
  const auto frame_bytes = static_cast<uint64_t>(layout.frame_bytes());
  constexpr uint64_t block_bytes = 1 << 16;
  const uint64_t frames_at_once = std::max<uint64_t>(1, block_bytes / frame_bytes);
  std::vector<std::byte> block(frames_at_once * frame_bytes);
  std::vector<float> samples(frames_at_once);
  for (uint64_t done = 0; done < count;) {
    const uint64_t frames = std::min(frames_at_once, count - done);
    const uint64_t offset = layout.data_offset_bytes + (first + done) * frame_bytes;
    const std::span bytes = std::span(block).first(frames * frame_bytes);
    if (source.read_at(offset, bytes) != bytes.size())
      fail_as(ErrorCode::unreadable, "audio", "{} was cut short (at byte {})", source.name, at_byte(offset));
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    for (uint64_t i = 0; i < frames; ++i) {
      samples[i] = mono_value(layout.format, layout.channels, at + i * frame_bytes);
    }
    if (!take(std::span(samples).first(frames))) return;
    done += frames;
  }
}

int read_samples(const ByteSource& source, uint64_t first, uint64_t count, const TakeSamples& take) {
  if (!looks_like_wav(source)) return codec_read_mono(source, first, count, take).sample_rate;
  const WavLayout layout = parse_wav(source);
  read_wav_mono(source, layout, first, count, take);
  return layout.sample_rate;
}

}  // namespace

std::string ClipPlace::name() const {
  return part ? fmt::format("{} (part at byte {})", path.string(), first_byte) : path.string();
}

AudioInfo read_clip_info(const ClipPlace& place) {
  const OpenClip clip(place);
  if (!looks_like_wav(clip.source)) return codec_info(clip.source);
  const WavLayout layout = parse_wav(clip.source);
  return {name_of(layout.format), layout.sample_rate, layout.channels, layout.frames};
}

Clip read_clip(const ByteSource& source, uint64_t first, uint64_t count) {
  Clip clip;
  clip.sample_rate = read_samples(source, first, count, [&](std::span<const float> samples) {
    clip.samples.insert(clip.samples.end(), samples.begin(), samples.end());
    return true;
  });
  return clip;
}

int read_samples(const ClipPlace& place, uint64_t first, uint64_t count, const TakeSamples& take) {
  return read_samples(OpenClip(place).source, first, count, take);
}

Clip read_clip(const ClipPlace& place, uint64_t first, uint64_t count) {
  return read_clip(OpenClip(place).source, first, count);
}

ByteSource memory_source(std::string name, std::span<const std::byte> bytes) {
  return {std::move(name), bytes.size(), [bytes](uint64_t offset, std::span<std::byte> into) -> size_t {
            if (offset >= bytes.size()) return 0;
            const auto part = bytes.subspan(offset, std::min<uint64_t>(into.size(), bytes.size() - offset));
            std::ranges::copy(part, into.begin());
            return part.size();
          }};
}

void read_bytes(const ClipPlace& place, std::span<std::byte> into) {
  const OpenClip clip(place);
  if (clip.source.size_bytes != into.size() || clip.source.read_at(0, into) != into.size()) {
    fail_as(ErrorCode::unreadable, "audio", "{} was cut short (at byte {})", clip.source.name,
            at_byte(clip.source.size_bytes));
  }
}

WavLayout read_wav_part(const ClipPlace& place, uint64_t first, uint64_t count, std::span<std::byte> into) {
  const OpenClip clip(place);
  WavLayout layout = parse_wav(clip.source);
  const auto frame_bytes = static_cast<uint64_t>(layout.frame_bytes());
  const uint64_t offset = std::exchange(layout.data_offset_bytes, 0) + first * frame_bytes;
  const bool there = first <= layout.frames && count <= layout.frames - first && count <= into.size() / frame_bytes;
  const std::span bytes = into.first(there ? count * frame_bytes : 0);
  if (!there || clip.source.read_at(offset, bytes) != bytes.size()) {
    fail_as(ErrorCode::unreadable, "audio", "{} has no {} samples from sample {} on (at byte {})", clip.source.name,
            count, first, at_byte(offset));
  }
  return layout;
}

RawClip read_raw_clip(const ClipPlace& place) {
  const OpenClip clip(place);
  RawClip raw;
  if (!looks_like_wav(clip.source)) {
    const Clip decoded = read_clip(clip.source);
    const std::span bytes = std::as_bytes(std::span(decoded.samples));
    raw.layout = {SampleFormat::float_32, 1, decoded.sample_rate, 0, decoded.samples.size()};
    raw.bytes.assign(bytes.begin(), bytes.end());
    return raw;
  }
  raw.layout = parse_wav(clip.source);
  raw.bytes.resize(raw.layout.frames * static_cast<uint64_t>(raw.layout.frame_bytes()));
  if (clip.source.read_at(std::exchange(raw.layout.data_offset_bytes, 0), raw.bytes) != raw.bytes.size()) {
    fail_as(ErrorCode::unreadable, "audio", "{} was cut short (at byte {})", clip.source.name,
            at_byte(clip.source.size_bytes));
  }
  return raw;
}

}  // namespace myxtts
