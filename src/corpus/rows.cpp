#include "corpus/rows.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/mapped_file.h"
#include "corpus/pack.h"
#include "corpus/tar.h"

#include <algorithm>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using Take = std::function<void(CorpusRow&&)>;

// At most `count` fields: what follows the last pipe that counts is one, whatever is in it.
std::vector<std::string> split(std::string_view line, size_t count) {
  std::vector<std::string> fields;
  for (size_t at = 0;;) {
    const size_t pipe = fields.size() + 1 == count ? std::string_view::npos : line.find('|', at);
    fields.emplace_back(line.substr(at, pipe - at));
    if (pipe == std::string_view::npos) return fields;
    at = pipe + 1;
  }
}

CorpusRow metadata_row(std::string_view line, const std::string& format) {
  const bool languages = format == "id|speaker|language|text", speakers = languages || format == "id|speaker|text";
  const std::vector<std::string> fields = split(line, languages ? 4 : 3);
  const auto field = [&](size_t i) { return i < fields.size() ? fields[i] : std::string(); };
  CorpusRow row;
  row.id = field(0);
  const size_t needed = languages ? 4 : speakers ? 3 : 2;
  if (fields.size() < needed) {
    row.problem = RejectionReason{Rejection::bad_row,
                                  fmt::format("the row has {} of the {} fields of {}", fields.size(), needed, format)};
  } else if (languages) {
    row.speaker = field(1), row.language = field(2), row.text = field(3);
  } else if (speakers) {
    row.speaker = field(1), row.text = field(2);
  } else {
    row.text = field(2).empty() ? field(1) : field(2);
  }
  return row;
}

CorpusRow manifest_row(std::string_view line, const fs::path& folder) {
  CorpusRow row;
  std::string problem;
  const Json json = parse_json(line, &problem);
  if (!json.is_object()) {
    row.problem =
        RejectionReason{Rejection::bad_row, "the line is not a JSON object" + (problem.empty() ? "" : ": " + problem)};
    return row;
  }
  const std::string path = json_text(json, "audio_filepath");
  row.id = json_text(json, "id").empty() ? fs::path(path).replace_extension().string() : json_text(json, "id");
  row.text = json_text(json, "text"), row.speaker = json_text(json, "speaker");
  row.language = json_text(json, "language");
  if (const auto seconds = json.find("duration"); seconds != json.end() && seconds->is_number()) {
    row.seconds = seconds->get<double>();
  }
  if (path.empty()) {
    row.problem = RejectionReason{Rejection::bad_row, "the line has no audio_filepath"};
  } else {
    row.place = ClipPlace(folder / fs::path(path).lexically_normal());
  }
  return row;
}

CorpusRow too_long_a_row(const TextLine& line) {
  CorpusRow row;
  row.id = fmt::format("line {}", line.number);
  row.problem = RejectionReason{Rejection::bad_row, fmt::format("the line is longer than {} bytes", max_line_bytes)};
  return row;
}

// The clips of one shard. The members of a clip lie side by side and share a name up to its first dot.
class ShardRows {
 public:
  ShardRows(const fs::path& shard, int64_t& number, const Take& take) : shard_(shard), number_(number), take_(take) {}

  void read() {
    const std::vector<PackedClip> packed = read_pack_index(shard_);
    for (const PackedClip& clip : packed) {
      CorpusRow row;
      row.line = ++number_;
      row.id = clip.id, row.speaker = clip.speaker, row.language = clip.language;
      row.text = clip.text, row.held_out = clip.held_out;
      row.place = ClipPlace(shard_, clip.first_byte, clip.bytes), row.hash = clip.hash;
      take_(std::move(row));
    }
    if (!packed.empty()) return;
    list_tar(shard_, [this](const TarMember& member) { add(member); });
    flush();
  }

 private:
  void add(const TarMember& member) {
    const size_t base = member.name.rfind('/') == std::string::npos ? 0 : member.name.rfind('/') + 1;
    const size_t dot = member.name.find('.', base);
    if (dot == std::string::npos || dot == base) return;
    const std::string key = member.name.substr(0, dot);
    std::string ending = member.name.substr(dot + 1);
    std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
    if (key != row_.id) flush(), row_.id = key;
    static const std::vector<std::string> audio = {"wav", "flac", "mp3", "ogg", "opus"};
    if (std::find(audio.begin(), audio.end(), ending) != audio.end()) {
      row_.place = ClipPlace(shard_, member.first_byte, member.bytes);
    } else if (ending == "txt" || ending == "normalized.txt" || ending == "json") {
      const std::string content = read(member);
      if (ending == "json") {
        const Json json = parse_json(content);
        if (!json.is_object()) {
          row_.problem = RejectionReason{Rejection::bad_row, fmt::format("{} is not a JSON object", member.name)};
          return;
        }
        if (row_.text.empty()) row_.text = json_text(json, "text");
        row_.speaker = json_text(json, "speaker"), row_.language = json_text(json, "language");
      } else if (row_.text.empty() || ending != "txt") {
        row_.text = content;
      }
    }
  }

  std::string read(const TarMember& member) {
    constexpr uint64_t longest = 1 << 20;
    std::string content(std::min(member.bytes, longest), '\0');
    content.resize(ReadOnlyFile(shard_).read_at(member.first_byte, std::as_writable_bytes(std::span(content))));
    return content;
  }

  void flush() {
    if (!row_.id.empty()) {
      row_.line = ++number_;
      if (!row_.place && !row_.problem) {
        row_.problem = RejectionReason{
            Rejection::missing,
            "missing: the shard has no audio of this name that is known (KEY.wav, .flac, .mp3, .ogg, .opus)"};
      }
      take_(std::move(row_));
    }
    row_ = CorpusRow();
  }

  const fs::path& shard_;
  int64_t& number_;
  const Take& take_;
  CorpusRow row_;
};

// Packed shards say themselves which clips are held out.
bool is_packed(const fs::path& shard) { return !read_pack_index(shard).empty(); }

std::vector<fs::path> shards_in(const fs::path& folder) {
  std::vector<fs::path> shards;
  for (const fs::path& path : list_folder(folder)) {
    if (path.extension() == ".tar" && fs::is_regular_file(path)) shards.push_back(path);
  }
  return shards;
}

}  // namespace

CorpusLayout find_layout(const fs::path& where) {
  using Kind = CorpusLayout::Kind;
  const fs::path folder = where.has_parent_path() ? where.parent_path() : fs::path(".");
  if (fs::is_regular_file(where)) {
    const std::string ending = where.extension().string();
    if (ending == ".jsonl" || ending == ".json") return {Kind::manifest, folder, {where}};
    if (ending == ".tar") {
      const fs::path shard = fs::is_symlink(where) ? fs::canonical(where) : where;  // its clips lie where it does
      return {Kind::tar, fs::is_symlink(where) ? shard.parent_path() : folder, {shard}, is_packed(shard)};
    }
    if (ending == ".csv" || ending == ".txt") return {Kind::metadata, folder, {where}};
    reject_input("corpus", "{} is not a corpus", where.string(),
                 way_out("it may be a folder, a .jsonl manifest, a .csv or a .tar"));
  }
  if (!fs::is_directory(where)) {
    reject_input("corpus", "{} is neither a folder nor a file", where.string(),
                 way_out("give a folder with metadata.csv and wavs/, a .jsonl manifest, or tar shards"));
  }
  if (fs::exists(where / "metadata_train.csv")) {
    if (!fs::exists(where / "metadata_eval.csv")) return {Kind::metadata, where, {where / "metadata_train.csv"}};
    return {Kind::metadata, where, {where / "metadata_train.csv", where / "metadata_eval.csv"}, true};
  }
  if (fs::exists(where / "metadata.csv")) return {Kind::metadata, where, {where / "metadata.csv"}};
  if (fs::exists(where / "manifest.jsonl")) return {Kind::manifest, where, {where / "manifest.jsonl"}};
  if (std::vector<fs::path> shards = shards_in(where); !shards.empty()) {
    return {Kind::tar, where, shards, is_packed(shards.front())};
  }
  reject_input("corpus", "{} has no metadata.csv, metadata_train.csv, manifest.jsonl or *.tar", where.string());
}

uint64_t count_rows(const CorpusLayout& layout) {
  uint64_t rows = 0;
  for (const fs::path& file : layout.files) {
    if (layout.kind == CorpusLayout::Kind::tar) {
      rows += fs::file_size(file) / 200'000 + 1;
    } else {
      const MappedFile mapped(file);
      rows += static_cast<uint64_t>(std::count(mapped.bytes().begin(), mapped.bytes().end(), std::byte{'\n'})) + 1;
    }
  }
  return rows;
}

void read_rows(const CorpusLayout& layout, const std::string& metadata_format, const Take& take) {
  int64_t number = 0;
  for (size_t i = 0; i < layout.files.size(); ++i) {
    if (layout.kind == CorpusLayout::Kind::tar) {
      ShardRows(layout.files[i], number, take).read();
      continue;
    }
    read_lines(layout.files[i], [&](const TextLine& line) {
      CorpusRow row = layout.kind == CorpusLayout::Kind::manifest ? manifest_row(line.text, layout.folder)
                                                                  : metadata_row(line.text, metadata_format);
      if (line.cut) row = too_long_a_row(line);
      row.line = line.number;
      row.held_out = layout.has_validation && i + 1 == layout.files.size();
      take(std::move(row));
    });
  }
}

}  // namespace myxtts
