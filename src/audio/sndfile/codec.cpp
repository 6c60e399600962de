#include "audio/codec.h"

#include "audio/pcm.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <mutex>

#include <fcntl.h>
#include <sndfile.h>
#include <unistd.h>

namespace myxtts {
namespace {

// libsndfile over bytes in memory (writing) or over a ByteSource (reading), through its virtual files.
struct VirtualFile {
  const ByteSource* source = nullptr;  // reading
  std::vector<std::byte> written;      // writing
  sf_count_t position = 0;
  uint64_t furthest_read = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(source != nullptr ? source->size_bytes : written.size()); }

  static sf_count_t length_of(void* self) { return static_cast<VirtualFile*>(self)->size(); }

  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    auto& file = *static_cast<VirtualFile*>(self);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.position : file.size();
    if (base + offset < 0) return -1;
    return file.position = base + offset;
  }

  static sf_count_t read(void* into, sf_count_t count, void* self) {
    auto& file = *static_cast<VirtualFile*>(self);
    if (count <= 0 || file.position >= file.size()) return 0;
    try {
      const auto want = static_cast<size_t>(std::min(count, file.size() - file.position));
      const size_t got =
          file.source->read_at(static_cast<uint64_t>(file.position), {static_cast<std::byte*>(into), want});
      file.position += static_cast<sf_count_t>(got);
      file.furthest_read = std::max(file.furthest_read, static_cast<uint64_t>(file.position));
      return static_cast<sf_count_t>(got);
    } catch (const Error&) {
      return 0;  // libsndfile is C: it sees a short read, and the caller reports where the clip broke off
    }
  }

  static sf_count_t write(const void* from, sf_count_t count, void* self) {
    auto& file = *static_cast<VirtualFile*>(self);
    const auto end = static_cast<size_t>(file.position + count);
    if (end > file.written.size()) file.written.resize(end);
    std::copy_n(static_cast<const std::byte*>(from), count, file.written.begin() + file.position);
    file.position += count;
    return count;
  }

  static sf_count_t tell(void* self) { return static_cast<VirtualFile*>(self)->position; }
};

SF_VIRTUAL_IO virtual_calls = {VirtualFile::length_of, VirtualFile::seek, VirtualFile::read, VirtualFile::write,
                               VirtualFile::tell};

// The MP3 decoder of libsndfile prints warnings about damaged files to stderr, with no option to disable them.
// Redirects stderr to /dev/null while any thread decodes MP3; the error itself is thrown.
class QuietStderr {
 public:
  explicit QuietStderr(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    const std::lock_guard lock(mutex());
    if (users()++ > 0) return;
    saved() = ::dup(STDERR_FILENO);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (saved() >= 0 && nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) ::close(nowhere);
  }
  ~QuietStderr() {
    if (!wanted_) return;
    const std::lock_guard lock(mutex());
    if (--users() > 0 || saved() < 0) return;
    ::dup2(saved(), STDERR_FILENO);
    ::close(saved());
  }
  QuietStderr(const QuietStderr&) = delete;
  QuietStderr& operator=(const QuietStderr&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex only;
    return only;
  }
  static int& users() {
    static int count = 0;
    return count;
  }
  static int& saved() {
    static int descriptor = -1;
    return descriptor;
  }

  const bool wanted_;
};

enum class Container { flac, ogg, mp3 };

// By its first bytes; libsndfile would open two dozen other containers too. Up to a few ID3 tags may come first.
Container container_of(const ByteSource& source) {
  uint64_t at = 0;
  for (int tags = 0; tags < 4; ++tags) {
    uint8_t bytes[10] = {};
    source.read_at(at, std::as_writable_bytes(std::span(bytes)));
    const std::string_view start(reinterpret_cast<const char*>(bytes), 4);
    if (start == "fLaC") return Container::flac;
    if (start == "OggS") return Container::ogg;
    if (bytes[0] == 0xFF && bytes[1] >= 0xE0) return Container::mp3;
    if (!start.starts_with("ID3")) break;
    uint64_t tag_bytes = 0;
    for (int i = 6; i < 10; ++i) tag_bytes = tag_bytes << 7 | (bytes[i] & 0x7F);
    at += sizeof bytes + tag_bytes;
  }
  fail_as(ErrorCode::unreadable, "audio", "{} cannot be decoded: it is not WAV, FLAC, Ogg or MP3 (at byte {})",
          source.name, at_byte(at));
}

using Handle = std::unique_ptr<SNDFILE, int (*)(SNDFILE*)>;

struct OpenClip {
  QuietStderr quiet;
  VirtualFile file;
  SF_INFO info{};
  Handle handle{nullptr, sf_close};

  explicit OpenClip(const ByteSource& source) : quiet(container_of(source) == Container::mp3) {
    file.source = &source;
    handle.reset(sf_open_virtual(&virtual_calls, SFM_READ, &info, &file));
    if (!handle) {
      std::string reason = sf_strerror(nullptr);
      std::erase_if(reason, [](char c) { return c == '\n' || c == '.'; });
      if (reason.find("pipe") != std::string::npos) reason = "no audio was found in it";  // its message for empty MP3s
      fail_as(ErrorCode::unreadable, "audio", "{} cannot be decoded: {} (at byte {})", source.name, reason,
              at_byte(file.furthest_read));
    }
    if (info.channels < 1 || !is_sample_rate(info.samplerate) || info.frames < 0) {
      fail_as(ErrorCode::unreadable, "audio", "{} has {} channels at {} Hz (at byte {})", source.name, info.channels,
              info.samplerate, at_byte(0));
    }
    if (static_cast<uint64_t>(info.frames) > max_frames()) {
      fail_as(ErrorCode::unreadable, "audio",
              "{} claims {} samples in each of {} channels; at most {} are read (at byte {})", source.name, info.frames,
              info.channels, max_frames(), at_byte(0));
    }
  }

  uint64_t max_frames() const { return max_clip_samples / static_cast<uint64_t>(info.channels); }
};

std::string format_name(const SF_INFO& info) {
  switch (info.format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_FLAC:
      return "flac";
    case SF_FORMAT_OGG:
      return (info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_OPUS ? "opus" : "vorbis";
    default:
      return "mp3";
  }
}

// The checksum of an Ogg page: CRC-32 with polynomial 0x04C11DB7, not reflected, starting from 0.
uint32_t ogg_checksum(std::span<const std::byte> page) {
  uint32_t crc = 0;
  for (const std::byte byte : page) {
    crc ^= static_cast<uint32_t>(byte) << 24;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc >> 31) != 0 ? 0x04C11DB7U : 0U);
  }
  return crc;
}

void store_word(std::span<std::byte> at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

// Replaces the random Ogg serial number by a content hash, to make files reproducible.
void fix_ogg_serial(std::vector<std::byte>& bytes, uint32_t serial) {
  constexpr size_t header_bytes = 27, serial_at = 14, checksum_at = 22, segments_at = 26;
  for (size_t at = 0; at + header_bytes <= bytes.size();) {
    const auto segments = static_cast<size_t>(bytes[at + segments_at]);
    size_t page_bytes = header_bytes + segments;
    for (size_t i = 0; i < segments; ++i) page_bytes += static_cast<size_t>(bytes.at(at + header_bytes + i));
    const std::span page = std::span(bytes).subspan(at, page_bytes);
    store_word(page.subspan(serial_at), serial);
    store_word(page.subspan(checksum_at), 0);
    store_word(page.subspan(checksum_at), ogg_checksum(page));
    at += page_bytes;
  }
}

int write_format(const std::string& format) {
  if (format == "flac") return SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
  if (format == "mp3") return SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
  return SF_FORMAT_OGG | SF_FORMAT_VORBIS;
}

}  // namespace

namespace {

AudioInfo info_of(const SF_INFO& info) {
  return {format_name(info), info.samplerate, info.channels, static_cast<uint64_t>(info.frames)};
}

// After a seek, a lossy decoder makes other samples than if it had come there from the beginning.
bool is_lossy(const SF_INFO& info) {
  const int codec = info.format & SF_FORMAT_SUBMASK;
  return codec == SF_FORMAT_VORBIS || codec == SF_FORMAT_OPUS || format_name(info) == "mp3";
}

}  // namespace

AudioInfo codec_info(const ByteSource& source) { return info_of(OpenClip(source).info); }

AudioInfo codec_read_mono(const ByteSource& source, uint64_t first, uint64_t count, const TakeSamples& take) {
  OpenClip clip(source);
  const auto claimed = static_cast<uint64_t>(clip.info.frames);
  uint64_t skipped = is_lossy(clip.info) ? first : 0;  // decoded, and not used
  if (first > skipped && sf_seek(clip.handle.get(), static_cast<sf_count_t>(first), SEEK_SET) < 0) {
    fail_as(ErrorCode::unreadable, "audio", "{} has no sample {} (at byte {})", source.name, first,
            at_byte(clip.file.furthest_read));
  }
  const int channels = clip.info.channels;
  constexpr uint64_t frames_at_once = 4096;
  std::vector<float> block(frames_at_once * static_cast<size_t>(channels)), mono(frames_at_once);
  uint64_t done = 0;
  count = std::min(count, clip.max_frames());  // the length of an MP3 may be an estimate
  while (done < count) {
    const uint64_t missing = skipped > 0 ? skipped : count - done;
    const auto want = static_cast<sf_count_t>(std::min<uint64_t>(frames_at_once, missing));
    const sf_count_t got = sf_readf_float(clip.handle.get(), block.data(), want);
    if (skipped > 0) {
      if (got < want) break;
      skipped -= static_cast<uint64_t>(got);
      continue;
    }
    for (sf_count_t frame = 0; frame < got; ++frame) {
      float sum = 0;
      for (int channel = 0; channel < channels; ++channel) sum += finite_or_zero(block[frame * channels + channel]);
      mono[static_cast<size_t>(frame)] = sum / static_cast<float>(channels);
    }
    done += static_cast<uint64_t>(got);
    if (!take(std::span(mono).first(static_cast<size_t>(got)))) return info_of(clip.info);
    if (got < want) break;
  }
  const uint64_t expected = std::min(count, claimed - std::min(claimed, first));
  if (done < expected && (format_name(clip.info) != "mp3" || done == 0)) {
    fail_as(ErrorCode::unreadable, "audio", "{} breaks off after {} of {} samples (at byte {})", source.name,
            first + done, claimed, at_byte(clip.file.furthest_read));
  }
  return info_of(clip.info);
}

void codec_write(const std::filesystem::path& path, const std::string& format, std::span<const float> samples,
                 int sample_rate) {
  VirtualFile file;
  SF_INFO info{};
  info.samplerate = sample_rate;
  info.channels = 1;
  info.format = write_format(format);
  {
    const Handle handle(sf_open_virtual(&virtual_calls, SFM_WRITE, &info, &file), sf_close);
    if (!handle)
      fail("audio", "{} cannot be written as {} at {} Hz: {}", path.string(), format, sample_rate,
           sf_strerror(nullptr));
    // Write small chunks, because Vorbis encodes each call on the stack.
    constexpr size_t frames_at_once = 4096;
    for (size_t at = 0; at < samples.size(); at += frames_at_once) {
      const std::span piece = samples.subspan(at, std::min(frames_at_once, samples.size() - at));
      if (sf_writef_float(handle.get(), piece.data(), static_cast<sf_count_t>(piece.size())) !=
          static_cast<sf_count_t>(piece.size())) {
        fail("audio", "{} cannot be written: {}", path.string(), sf_strerror(handle.get()));
      }
    }
  }
  if (format == "ogg") {
    fix_ogg_serial(file.written, static_cast<uint32_t>(hash_bytes(samples.data(), samples.size_bytes())));
  }
  write_file_atomically(path, file.written, Sync::no);
}

}  // namespace myxtts
