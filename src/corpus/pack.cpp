#include "corpus/pack.h"

#include "base/error.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/hash.h"
#include "base/workers.h"
#include "corpus/tar.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* index_name = "myxtts-index.jsonl";
constexpr const char* unfinished_folder = ".packing";
constexpr uint64_t max_index_bytes = uint64_t{1} << 28;  // of a shard; readers need not believe in more
constexpr size_t clips_at_once = 64;
constexpr uint64_t bytes_at_once = uint64_t{1} << 28;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

struct ShardClip {
  CorpusClip clip;
  PackedClip packed;
  std::string audio_name;
  std::string text_name;
  std::string text_json;
  uint64_t index_bytes = 0;  // of its line
};

// One line of the index. The numbers that are known last have a fixed width, so that the line's length never changes.
std::string index_line(const PackedClip& clip) {
  return fmt::format(
             R"({{"id":{},"speaker":{},"language":{},"text":{},"held_out":{},"first_byte":{:20},"bytes":{},"xxh64":"{}"}})",
             Json(clip.id).dump(), Json(clip.speaker).dump(), Json(clip.language).dump(), Json(clip.text).dump(),
             clip.held_out, clip.first_byte, clip.bytes, hash_hex(clip.hash)) +
         '\n';
}

std::string extension_of(const ClipPlace& place) {
  if (!place.part) return place.path.extension().string();
  const std::string format = read_clip_info(place).format;  // a tar's own extension says nothing of its members
  if (format.starts_with("wav")) return ".wav";
  return format == "vorbis" ? ".ogg" : "." + format;
}

uint64_t packed_bytes(const CorpusClip& clip, bool original) {
  if (original) return clip.place.bytes != 0 ? clip.place.bytes : ReadOnlyFile(clip.place.path).size_bytes();
  if (clip.samples > (std::numeric_limits<uint32_t>::max() - wav_header_bytes) / 2) {
    fail("pack", "{} is longer than a WAV file can be", clip.place.name(), way_out("pack it with its original bytes"));
  }
  return wav_header_bytes + clip.samples * 2;
}

ShardClip plan_clip(const CorpusClip& clip, bool original) {
  ShardClip planned;
  planned.clip = clip;
  planned.packed = {
      clip.id, clip.speaker, clip.language, clip.text, clip.length.held_out != 0, 0, packed_bytes(clip, original), 0};
  planned.audio_name = clip.id + (original ? extension_of(clip.place) : ".wav");
  planned.text_name = clip.id + ".json";
  try {
    planned.text_json = Json{{"text", clip.text}, {"speaker", clip.speaker}, {"language", clip.language}}.dump();
    planned.index_bytes = index_line(planned.packed).size();
  } catch (const Json::exception&) {
    fail("pack", "the id, speaker or text of {} is not UTF-8", clip.place.name());
  }
  return planned;
}

// The clips from `first` on that fill one shard.
std::vector<ShardClip> plan_shard(const CorpusIndex& corpus, size_t first, const PackOptions& options) {
  std::vector<ShardClip> shard;
  uint64_t index_bytes = 0;
  uint64_t member_bytes = 0;
  for (size_t number = first; number < corpus.size(); ++number) {
    CorpusClip source = corpus.clip(number);
    source.place.path = options.corpus_folder / source.place.path;
    ShardClip clip = plan_clip(source, options.original);
    index_bytes += clip.index_bytes;
    member_bytes += tar_member_bytes(clip.audio_name, clip.packed.bytes);
    member_bytes += tar_member_bytes(clip.text_name, clip.text_json.size());
    const uint64_t total = tar_member_bytes(index_name, index_bytes) + member_bytes + tar_closing_bytes;
    if (!shard.empty() && (total > options.shard_bytes || index_bytes > max_index_bytes)) break;
    shard.push_back(std::move(clip));
  }
  return shard;
}

std::vector<std::byte> read_place(const ClipPlace& place) {
  const ReadOnlyFile file(place.path);
  const uint64_t bytes = place.bytes != 0 ? place.bytes : file.size_bytes();
  const bool changed = !place.part && bytes != file.size_bytes();
  if (changed || place.first_byte > file.size_bytes() || bytes > file.size_bytes() - place.first_byte) {
    fail_as(ErrorCode::changed, "pack", "{} has {} bytes where {} were expected (at byte {})", place.path.string(),
            file.size_bytes(), bytes, at_byte(place.first_byte));
  }
  std::vector<std::byte> content(bytes);
  if (file.read_at(place.first_byte, content) != bytes) {
    fail_as(ErrorCode::unreadable, "pack", "{} was cut short while it was read (at byte {})", place.path.string(),
            at_byte(place.first_byte));
  }
  return content;
}

std::vector<std::byte> wav_bytes(const CorpusClip& clip) {
  const Clip audio = read_clip(clip.place, clip.first_sample, clip.samples);
  if (audio.samples.size() != clip.samples || audio.sample_rate != clip.sample_rate) {
    fail_as(ErrorCode::changed, "pack", "{} has {} samples at {} Hz from sample {} on where {} at {} Hz were expected",
            clip.place.name(), audio.samples.size(), audio.sample_rate, clip.first_sample, clip.samples,
            clip.sample_rate, way_out("prepare the corpus again"));
  }
  return make_wav(audio.samples, audio.sample_rate);
}

// How many clips from `first` on are decoded before they are written.
size_t clips_in_chunk(const std::vector<ShardClip>& shard, size_t first) {
  size_t count = 0;
  uint64_t bytes = 0;
  for (; first + count < shard.size() && count < clips_at_once && (count == 0 || bytes < bytes_at_once); ++count) {
    bytes += shard[first + count].packed.bytes;
  }
  return count;
}

std::string index_text(const std::vector<ShardClip>& shard) {
  std::string text;
  for (const ShardClip& clip : shard) text += index_line(clip.packed);
  return text;
}

uint64_t write_shard(const fs::path& path, std::vector<ShardClip> shard, const PackOptions& options,
                     const std::function<void()>& clip_done) {
  TarWriter tar(path);
  const uint64_t index_at = tar.add(index_name, bytes_of(index_text(shard)));
  for (size_t first = 0; first < shard.size();) {
    std::vector<std::vector<std::byte>> contents(clips_in_chunk(shard, first));
    parallel_for(contents.size(), options.threads, [&](size_t i) {
      ShardClip& clip = shard[first + i];
      contents[i] = options.original ? read_place(clip.clip.place) : wav_bytes(clip.clip);
      clip.packed.hash = hash_bytes(contents[i].data(), contents[i].size());
    });
    for (const std::vector<std::byte>& content : contents) {
      ShardClip& clip = shard[first++];
      clip.packed.first_byte = tar.add(clip.audio_name, content);
      tar.add(clip.text_name, bytes_of(clip.text_json));
      clip_done();
    }
  }
  tar.overwrite(index_at, bytes_of(index_text(shard)));
  tar.finish();
  return tar.position();
}

bool is_shard(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("shard-") && name.ends_with(".tar");
}

fs::path made_folder(const fs::path& folder) {
  fs::create_directories(folder);
  return folder;
}

// Where shards wait until all are written; removed with whatever is in it, also what one that was killed left in it.
class WaitingFolder {
 public:
  explicit WaitingFolder(const fs::path& folder)
      : lock_("pack", made_folder(folder)), path_(folder / unfinished_folder) {
    for (const fs::path& path : list_folder(folder)) {
      if (!is_shard(path)) continue;
      reject_input("pack", "{} holds shards already, such as {}", folder.string(), path.filename().string(),
                   way_out("remove them or pack into another folder"));
    }
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    fs::create_directory(path_);
  }
  ~WaitingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WaitingFolder(const WaitingFolder&) = delete;
  WaitingFolder& operator=(const WaitingFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  FolderLock lock_;
  fs::path path_;
};

uint64_t number(const Json& line, const char* key) {
  const Json& value = line.at(key);
  if (!value.is_number_unsigned()) throw std::invalid_argument(fmt::format("'{}' is not a number", key));
  return value.get<uint64_t>();
}

uint64_t hash_in(const Json& line) {
  const std::string& digits = line.at("xxh64").get_ref<const std::string&>();
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  if (digits.size() != 16 || error != std::errc() || end != digits.data() + 16) {
    throw std::invalid_argument("'xxh64' is not 16 hexadecimal digits");
  }
  return hash;
}

PackedClip parse_line(std::string_view text, uint64_t file_bytes) {
  const Json line = Json::parse(text);
  PackedClip clip{line.at("id"),
                  line.at("speaker"),
                  line.value("language", ""),
                  line.at("text"),
                  line.at("held_out").get<bool>(),
                  number(line, "first_byte"),
                  number(line, "bytes"),
                  hash_in(line)};
  if (clip.bytes == 0) throw std::invalid_argument("the clip is empty");
  if (clip.first_byte > file_bytes || clip.bytes > file_bytes - clip.first_byte) {
    throw std::invalid_argument(
        fmt::format("the clip ends at byte {} + {} where the file has {}", clip.first_byte, clip.bytes, file_bytes));
  }
  return clip;
}

}  // namespace

PackReport pack_corpus(const CorpusIndex& corpus, const fs::path& folder, const PackOptions& options) try {
  if (corpus.size() == 0) reject_input("pack", "{} has no clips to pack", corpus.path().string());
  const WaitingFolder waiting(folder);
  PackReport report;
  const auto clip_done = [&] {
    ++report.clips;
    if (options.progress) options.progress(report.clips, corpus.size());
  };
  while (report.clips < corpus.size()) {
    const std::string name = fmt::format("shard-{:05}.tar", report.shards.size());
    report.bytes += write_shard(waiting.path() / name, plan_shard(corpus, report.clips, options), options, clip_done);
    report.shards.push_back(folder / name);
  }
  for (const fs::path& shard : report.shards) fs::rename(waiting.path() / shard.filename(), shard);
  return report;
} catch (const fs::filesystem_error& error) {
  fail("pack", "{}: {}", error.path1().string(), error.code().message());
}

std::vector<PackedClip> read_pack_index(const fs::path& shard) {
  const std::optional<TarMember> index = first_tar_member(shard);
  if (!index || index->name != index_name) return {};
  if (index->bytes > max_index_bytes) {
    fail_as(ErrorCode::unreadable, "pack", "{} has an index of {} bytes; at most {} are read (at byte {})",
            shard.string(), index->bytes, max_index_bytes, at_byte(index->first_byte));
  }
  const ReadOnlyFile file(shard);
  std::string text(index->bytes, '\0');
  text.resize(file.read_at(index->first_byte, std::as_writable_bytes(std::span(text))));
  std::vector<PackedClip> clips;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    try {
      clips.push_back(parse_line(std::string_view(text).substr(at, end - at), file.size_bytes()));
    } catch (const std::exception& error) {
      fail_as(ErrorCode::unreadable, "pack", "{} has a damaged index, line {} (at byte {}): {}", shard.string(),
              clips.size() + 1, at_byte(index->first_byte + at), error.what());
    }
    at = end + 1;
  }
  return clips;
}

void check_packed(const ClipPlace& place, uint64_t hash) {
  const std::vector<std::byte> bytes = read_place(place);
  const uint64_t found = hash_bytes(bytes.data(), bytes.size());
  if (found == hash) return;
  fail_as(ErrorCode::unreadable, "pack",
          "{} is damaged: its {} bytes have XXH64 {} where {} was written; pack it again (at byte {})",
          place.path.string(), bytes.size(), hash_hex(found), hash_hex(hash), at_byte(place.first_byte));
}

}  // namespace myxtts
