#include "corpus/index.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <charconv>
#include <cstring>
#include <optional>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr char magic[8] = {'M', 'Y', 'X', 'T', 'T', 'S', 'I', 'X'};
constexpr uint32_t version = 3;

struct Section {
  uint64_t at = 0;
  uint64_t bytes = 0;
};

// The structs below lie in the file as they are: little-endian, no gaps.
struct Header {
  char magic[8];
  uint32_t version = 0;
  uint32_t header_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t clips = 0;
  IndexStamp stamp = {};
  Section strings, lines, lengths, labels, summary;
  uint64_t lengths_hash = 0;
  uint64_t labels_hash = 0;
  uint64_t summary_hash = 0;
  uint64_t header_hash = 0;  // of all that is before it
};

struct Line {
  uint64_t strings_at = 0;  // within the strings: id, path, text, phonemes, each ended by a zero
  uint64_t first_byte = 0;
  uint64_t bytes = 0;
  int64_t time_ns = 0;
  uint64_t first_sample = 0;
  uint64_t samples = 0;
  uint32_t sample_rate = 0;
  uint16_t part = 0;
  uint16_t wav = 0;
  uint32_t strings_bytes = 0;
  uint32_t hash = 0;  // of the strings and, with 0 here, of the line
};
static_assert(sizeof(Line) == 64 && sizeof(ClipLength) == 8 && sizeof(ClipLabels) == 8 && sizeof(IndexStamp) == 16);

uint32_t hash_of(Line line, std::string_view strings) {
  line.hash = 0;
  return static_cast<uint32_t>(hash_text(strings, hash_bytes(&line, sizeof(line))));
}

uint64_t hash_of(const Header& header) { return hash_bytes(&header, offsetof(Header, header_hash)); }

Json to_json(const std::vector<RejectedClip>& clips) {
  Json list = Json::array();
  for (const RejectedClip& clip : clips) {
    list.push_back({clip.id, clip.path, name_of(clip.code), clip.reason, clip.line});
  }
  return list;
}

std::vector<RejectedClip> rejected_from(const Json& list) {
  std::vector<RejectedClip> clips;
  for (const Json& one : list) {
    const std::optional<Rejection> code = rejection_named(one.at(2).get<std::string>());
    clips.push_back({one.at(0).get<std::string>(), one.at(1).get<std::string>(), code.value_or(Rejection::bad_row),
                     one.at(3).get<std::string>(), one.at(4).get<int64_t>()});
  }
  return clips;
}

std::string to_text(const CorpusSummary& summary) {
  Json json;
  json["rejected"] = to_json(summary.rejected);
  json["truncated"] = to_json(summary.truncated);
  json["sample_rates"] = summary.sample_rates;
  json["formats"] = summary.formats;
  json["speakers"] = summary.speakers;
  json["languages"] = summary.languages;
  json["speaker_times"] = Json::array();
  for (const SpeakerTime& time : summary.speaker_times) {
    json["speaker_times"].push_back({time.labels.speaker, time.labels.language, time.clips, time.seconds});
  }
  json["symbols"] = summary.symbols;
  json["seconds"] = summary.seconds;
  json["mel_mean"] = summary.mel_mean;
  json["mel_std"] = summary.mel_std;
  json["mel_measured_clips"] = summary.mel_measured_clips;
  json["deep"] = summary.deep;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

CorpusSummary summary_from(std::string_view text) {
  const Json json = parse_json(text);
  CorpusSummary summary;
  summary.rejected = rejected_from(json.at("rejected"));
  summary.truncated = rejected_from(json.at("truncated"));
  summary.sample_rates = json.at("sample_rates").get<std::map<std::string, int64_t>>();
  for (const auto& [rate, clips] : summary.sample_rates) {
    int hz = 0;
    std::from_chars(rate.data(), rate.data() + rate.size(), hz);
    if (!is_sample_rate(hz) || rate != fmt::format("{}", hz)) throw std::invalid_argument("a sample rate is no number");
  }
  summary.formats = json.at("formats").get<std::map<std::string, int64_t>>();
  summary.speakers = json.at("speakers").get<std::vector<std::string>>();
  summary.languages = json.at("languages").get<std::vector<std::string>>();
  for (const Json& time : json.at("speaker_times")) {
    summary.speaker_times.push_back({{time.at(0), time.at(1)}, time.at(2), time.at(3)});
  }
  summary.symbols = json.at("symbols").get<std::vector<std::string>>();
  summary.seconds = json.at("seconds").get<double>();
  summary.mel_mean = json.at("mel_mean").get<double>();
  summary.mel_std = json.at("mel_std").get<double>();
  summary.mel_measured_clips = json.at("mel_measured_clips").get<int64_t>();
  summary.deep = json.at("deep").get<bool>();
  return summary;
}

}  // namespace

namespace {

// Numbers for names, in the order in which they come.
class NameNumbers {
 public:
  uint32_t number(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
};

}  // namespace

struct IndexWriter::State {
  explicit State(fs::path path) : file(std::move(path)) {}

  // What follows begins at a multiple of 8.
  void align() {
    const std::byte zeros[8] = {};
    file.write(std::span(zeros).first((8 - file.position() % 8) % 8));
  }
  template <typename Item>
  Section write_all(const std::vector<Item>& items) {
    align();
    const Section section{file.position(), items.size() * sizeof(Item)};
    file.write(std::as_bytes(std::span(items)));
    return section;
  }

  FileWriter file;
  std::vector<Line> lines;
  ClipLabels label(const CorpusClip& clip) {
    const ClipLabels label{speakers.number(clip.speaker), languages.number(clip.language)};
    SpeakerTime& time = times[{label.speaker, label.language}];
    time.labels = label, ++time.clips, time.seconds += clip.seconds();
    return label;
  }

  std::vector<ClipLength> lengths;
  std::vector<ClipLabels> labels;
  NameNumbers speakers, languages;
  std::map<std::pair<uint32_t, uint32_t>, SpeakerTime> times;
};

IndexWriter::IndexWriter(fs::path path) : state_(std::make_unique<State>(std::move(path))) {
  const Header header{};
  state_->file.write(std::as_bytes(std::span(&header, 1)));
}

IndexWriter::~IndexWriter() = default;

std::vector<ClipLength>& IndexWriter::lengths() { return state_->lengths; }
const std::vector<ClipLabels>& IndexWriter::labels() const { return state_->labels; }

void IndexWriter::add(const CorpusClip& clip) {
  std::string strings;
  for (const std::string& text : {clip.id, clip.place.path.string(), clip.text, clip.phonemes}) {
    strings.append(text.c_str()).push_back('\0');
  }
  Line line;
  line.strings_at = state_->file.position() - sizeof(Header);
  line.strings_bytes = static_cast<uint32_t>(strings.size());
  line.first_byte = clip.place.first_byte, line.bytes = clip.place.bytes, line.part = clip.place.part ? 1 : 0;
  line.time_ns = clip.time_ns;
  line.first_sample = clip.first_sample, line.samples = clip.samples;
  line.sample_rate = static_cast<uint32_t>(clip.sample_rate);
  line.wav = clip.wav ? 1 : 0;
  line.hash = hash_of(line, strings);
  state_->file.write(std::as_bytes(std::span(strings)));
  state_->lines.push_back(line);
  state_->lengths.push_back(clip.length);
  state_->labels.push_back(state_->label(clip));
}

void IndexWriter::finish(const IndexStamp& stamp, CorpusSummary summary) {
  summary.speakers = state_->speakers.names(), summary.languages = state_->languages.names();
  for (const auto& [labels, time] : state_->times) summary.speaker_times.push_back(time);
  Header header;
  std::memcpy(header.magic, magic, sizeof(magic));
  header.version = version, header.header_bytes = sizeof(Header);
  header.clips = state_->lines.size();
  header.stamp = stamp;
  header.strings = {sizeof(Header), state_->file.position() - sizeof(Header)};
  header.lines = state_->write_all(state_->lines);
  header.lengths = state_->write_all(state_->lengths);
  header.lengths_hash = hash_bytes(state_->lengths.data(), header.lengths.bytes);
  header.labels = state_->write_all(state_->labels);
  header.labels_hash = hash_bytes(state_->labels.data(), header.labels.bytes);
  const std::string text = to_text(summary);
  state_->align();
  header.summary = {state_->file.position(), text.size()};
  header.summary_hash = hash_text(text);
  state_->file.write(std::as_bytes(std::span(text)));
  header.file_bytes = state_->file.position();
  header.header_hash = hash_of(header);
  state_->file.overwrite(0, std::as_bytes(std::span(&header, 1)));
  state_->file.finish();
}

struct CorpusIndex::State {
  explicit State(const fs::path& where) : path(where), file(where) {
    const std::span<const std::byte> bytes = file.bytes();
    if (bytes.size() < sizeof(Header) || std::memcmp(bytes.data(), magic, sizeof(magic)) != 0)
      broken("is not an index");
    std::memcpy(&header, bytes.data(), sizeof(Header));
    if (header.version != version) broken("is of another version");
    if (header.header_bytes != sizeof(Header) || header.header_hash != hash_of(header)) broken("has a damaged header");
    if (header.file_bytes != bytes.size()) broken("was cut short");
    strings = {reinterpret_cast<const char*>(section(header.strings, 1, header.strings.bytes).data()),
               header.strings.bytes};
    lines = {reinterpret_cast<const Line*>(section(header.lines, sizeof(Line), header.clips).data()), header.clips};
    lengths = {reinterpret_cast<const ClipLength*>(section(header.lengths, sizeof(ClipLength), header.clips).data()),
               header.clips};
    if (hash_bytes(lengths.data(), lengths.size_bytes()) != header.lengths_hash) broken("has damaged lengths");
    for (const ClipLength& length : lengths) {
      if (length.mel_frames == 0 || length.tokens == 0) broken("has a clip without frames or tokens");
    }
    labels = {reinterpret_cast<const ClipLabels*>(section(header.labels, sizeof(ClipLabels), header.clips).data()),
              header.clips};
    if (hash_bytes(labels.data(), labels.size_bytes()) != header.labels_hash) broken("has damaged labels");
    const std::span<const std::byte> text = section(header.summary, 1, header.summary.bytes);
    const std::string_view summary_text(reinterpret_cast<const char*>(text.data()), text.size());
    if (hash_text(summary_text) != header.summary_hash) broken("has a damaged summary");
    try {
      summary = summary_from(summary_text);
    } catch (const std::exception&) {
      broken("has a summary that cannot be read");
    }
    for (const ClipLabels& clip : labels) {
      if (clip.speaker >= summary.speakers.size() || clip.language >= summary.languages.size()) {
        broken("has a clip of an unknown speaker or language");
      }
    }
  }

  [[noreturn]] void broken(const char* how) const {
    fail_as(ErrorCode::unreadable, "index", "{} {}", path.string(), how);
  }

  std::span<const std::byte> section(const Section& wanted, uint64_t item_bytes, uint64_t items) const {
    const std::span<const std::byte> bytes = file.bytes();
    if (wanted.at % (item_bytes > 1 ? 8 : 1) != 0 || wanted.at > bytes.size() ||
        wanted.bytes > bytes.size() - wanted.at || wanted.bytes / item_bytes != items) {
      broken("has a section outside of itself");
    }
    return bytes.subspan(wanted.at, wanted.bytes);
  }

  fs::path path;
  MappedFile file;
  Header header;
  std::string_view strings;
  std::span<const Line> lines;
  std::span<const ClipLength> lengths;
  std::span<const ClipLabels> labels;
  CorpusSummary summary;
};

CorpusIndex::CorpusIndex(const fs::path& path) : state_(std::make_unique<State>(path)) {}
CorpusIndex::~CorpusIndex() = default;
CorpusIndex::CorpusIndex(CorpusIndex&&) noexcept = default;
CorpusIndex& CorpusIndex::operator=(CorpusIndex&&) noexcept = default;

const fs::path& CorpusIndex::path() const { return state_->path; }
const IndexStamp& CorpusIndex::stamp() const { return state_->header.stamp; }
uint64_t CorpusIndex::content_hash() const {
  const Header& header = state_->header;
  uint64_t hash = hash_text(state_->strings, hash_bytes(&header.labels_hash, sizeof(uint64_t), header.lengths_hash));
  for (Line line : state_->lines) {
    line.time_ns = 0, line.hash = 0;
    hash = hash_bytes(&line, sizeof(line), hash);
  }
  return hash;
}
const CorpusSummary& CorpusIndex::summary() const { return state_->summary; }
std::span<const ClipLength> CorpusIndex::lengths() const { return state_->lengths; }
std::span<const ClipLabels> CorpusIndex::labels() const { return state_->labels; }

uint64_t CorpusIndex::loaded_bytes(size_t number) const {
  const Line& line = state_->lines[number];
  return line.wav != 0 ? line.bytes : line.samples * sizeof(float);
}

CorpusClip CorpusIndex::clip(size_t number) const {
  const Line& line = state_->lines[number];
  const bool inside =
      line.strings_at <= state_->strings.size() && line.strings_bytes <= state_->strings.size() - line.strings_at;
  std::string_view strings = inside ? state_->strings.substr(line.strings_at, line.strings_bytes) : std::string_view();
  if (!inside || hash_of(line, strings) != line.hash) {
    fail_as(ErrorCode::unreadable, "index", "{} is damaged at clip {}", state_->path.string(), number,
            way_out("prepare the corpus again"));
  }
  if (!is_sample_rate(line.sample_rate) || line.samples == 0 || line.samples > max_clip_samples ||
      line.first_sample > max_clip_samples) {
    fail_as(ErrorCode::unreadable, "index", "{} has impossible lengths at clip {}", state_->path.string(), number,
            way_out("prepare the corpus again"));
  }
  const auto next = [&strings] {
    std::string text(strings.substr(0, strings.find('\0')));
    strings.remove_prefix(std::min(strings.size(), text.size() + 1));
    return text;
  };
  CorpusClip clip;
  clip.id = next();
  clip.place.path = next();
  clip.text = next();
  clip.phonemes = next();
  clip.place.first_byte = line.first_byte, clip.place.bytes = line.bytes, clip.place.part = line.part != 0;
  clip.time_ns = line.time_ns;
  clip.sample_rate = static_cast<int>(line.sample_rate);
  clip.first_sample = line.first_sample, clip.samples = line.samples, clip.wav = line.wav != 0;
  clip.length = state_->lengths[number];
  clip.labels = state_->labels[number];
  clip.speaker = state_->summary.speakers[clip.labels.speaker];
  clip.language = state_->summary.languages[clip.labels.language];
  return clip;
}

}  // namespace myxtts
