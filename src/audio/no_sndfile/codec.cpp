#include "audio/codec.h"

#include "base/error.h"

namespace myxtts {
namespace {

[[noreturn]] void missing(const std::string& name) {
  fail_as(ErrorCode::unreadable, "audio", "{} is not a WAV file, and this build has no libsndfile", name,
          way_out("install libsndfile1-dev and rebuild"));
}

}  // namespace

AudioInfo codec_info(const ByteSource& source) { missing(source.name); }

AudioInfo codec_read_mono(const ByteSource& source, uint64_t, uint64_t, const TakeSamples&) { missing(source.name); }

void codec_write(const std::filesystem::path& path, const std::string&, std::span<const float>, int) {
  missing(path.string());
}

}  // namespace myxtts
