// What `prepare` knows of a corpus, in one file that is mapped, not read: opening ten million clips takes no longer
// than checking their lengths. Its layout is in docs/en/formats.md.
//
// The lengths and the summary are checked when the file is opened, each clip's own line when it is asked for.
#pragma once

#include "audio/clip.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "corpus/rejection.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

// What planning needs of a clip.
struct ClipLength {
  uint32_t mel_frames = 0;
  uint32_t tokens : 31 = 0;
  uint32_t held_out : 1 = 0;  // for validation
};

// Who speaks a clip, and in which language: numbers in the summary's lists.
struct ClipLabels {
  uint32_t speaker = 0, language = 0;
};

struct CorpusClip {
  std::string id;
  std::string speaker;  // empty: not named
  std::string language;
  std::string text;      // cleaned
  std::string phonemes;  // empty: characters are the tokens
  ClipPlace place;       // with the size that the file had
  int64_t time_ns = 0;   // when the file was last changed
  int sample_rate = 0;
  uint64_t first_sample = 0;  // what is used of the clip, at its own rate
  uint64_t samples = 0;
  bool wav = false;  // read as it lies in the file; others are decoded first
  ClipLength length;
  ClipLabels labels;  // of a clip in an index

  double seconds() const { return static_cast<double>(samples) / sample_rate; }
  const std::string& symbols() const { return phonemes.empty() ? text : phonemes; }  // what becomes tokens
};

struct RejectedClip {
  std::string id;
  std::string path;
  Rejection code = Rejection::bad_row;
  std::string reason;  // the sentence
  int64_t line = 0;
};

// What one speaker says in one language.
struct SpeakerTime {
  ClipLabels labels;
  int64_t clips = 0;
  double seconds = 0;
};

// Everything about the corpus but its clips.
struct CorpusSummary {
  std::vector<RejectedClip> rejected;
  std::vector<RejectedClip> truncated;  // accepted, but cut
  std::map<std::string, int64_t> sample_rates;
  std::map<std::string, int64_t> formats;
  // Filled by the writer: names as the clips' labels number them, in the order in which they came.
  std::vector<std::string> speakers, languages;
  std::vector<SpeakerTime> speaker_times;
  std::vector<std::string> symbols;  // of the vocabulary
  double seconds = 0;
  double hours() const { return seconds / 3600; }
  double mel_mean = 0, mel_std = 1;
  int64_t mel_measured_clips = 0;  // how many the mean was taken from
  bool deep = false;               // every clip was decoded
};

// Settings and files that an index was made from; another stamp means that it is out of date.
struct IndexStamp {
  uint64_t settings = 0;
  uint64_t files = 0;
  bool operator==(const IndexStamp&) const = default;
};

// Writes clips as they come; nothing is seen of the file before `finish`.
class IndexWriter {
 public:
  explicit IndexWriter(std::filesystem::path path);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  void add(const CorpusClip& clip);
  std::vector<ClipLength>& lengths();  // of the clips added, to be changed until `finish`
  const std::vector<ClipLabels>& labels() const;
  void finish(const IndexStamp& stamp, CorpusSummary summary);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Immutable; any thread.
class CorpusIndex {
 public:
  // Throws Error with the reason when the file is not a whole index of this version.
  explicit CorpusIndex(const std::filesystem::path& path);
  ~CorpusIndex();
  CorpusIndex(CorpusIndex&&) noexcept;
  CorpusIndex& operator=(CorpusIndex&&) noexcept;

  const std::filesystem::path& path() const;
  const IndexStamp& stamp() const;
  uint64_t content_hash() const;  // of all clips, but not of when their files were changed; reads the whole file
  const CorpusSummary& summary() const;
  size_t size() const { return lengths().size(); }
  std::span<const ClipLength> lengths() const;
  std::span<const ClipLabels> labels() const;
  CorpusClip clip(size_t number) const;
  uint64_t loaded_bytes(size_t number) const;  // of that clip as the loader holds it; at once and unchecked

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
