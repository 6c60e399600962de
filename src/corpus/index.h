// What `prepare` knows of a corpus, in one file that is mapped, not read: opening ten million clips takes no longer
// than checking their lengths. Its layout is in docs/en/formats.md.
//
// The lengths and the summary are checked when the file is opened, each clip's own line when it is asked for.
#pragma once

#include "audio/clip.h"
#include "base/files.h"
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

struct CorpusClip {
  std::string id;
  std::string speaker;
  std::string text;      // cleaned
  std::string phonemes;  // empty: characters are the tokens
  ClipPlace place;       // with the size that the file had
  int64_t time_ns = 0;   // when the file was last changed
  int sample_rate = 0;
  uint64_t first_sample = 0;  // what is used of the clip, at its own rate
  uint64_t samples = 0;
  bool wav = false;  // read as it lies in the file; others are decoded first
  ClipLength length;

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

// Everything about the corpus but its clips.
struct CorpusSummary {
  std::vector<RejectedClip> rejected;
  std::vector<RejectedClip> truncated;  // accepted, but cut
  std::map<std::string, int64_t> sample_rates;
  std::map<std::string, int64_t> formats;
  std::vector<std::string> speakers;
  std::vector<std::string> symbols;  // of the vocabulary
  double seconds = 0;
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
  void finish(const IndexStamp& stamp, const CorpusSummary& summary);

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
  const CorpusSummary& summary() const;
  size_t size() const { return lengths().size(); }
  std::span<const ClipLength> lengths() const;
  CorpusClip clip(size_t number) const;
  uint64_t loaded_bytes(size_t number) const;  // of that clip as the loader holds it; at once and unchecked

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
