// What `prepare` knows of a corpus: every row either accepted with its lengths, or rejected with its reason.
#pragma once

#include "base/config.h"
#include "features/mel_spec.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace myxtts {

struct CorpusClip {
  std::string id;
  std::string speaker;
  std::string text;
  std::filesystem::path path;
  int sample_rate = 0;
  int64_t samples = 0;  // at its own rate
  int64_t mel_frames = 0;
  int64_t tokens = 0;

  double seconds() const { return static_cast<double>(samples) / sample_rate; }
};

struct RejectedClip {
  std::string id;
  std::filesystem::path path;
  std::string reason;
  int line = 0;
};

struct Corpus {
  std::filesystem::path folder;
  MelSpec mel;
  std::vector<CorpusClip> clips;  // in the metadata's order
  std::vector<RejectedClip> rejected;
  std::map<int, int64_t> sample_rates;
  std::map<std::string, int64_t> formats;

  double hours() const;
};

struct ScanOptions {
  bool deep = false;                                                 // decode every clip
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // from any thread, one at a time
};

// Reads every clip's header on all cores.
Corpus scan_corpus(const std::filesystem::path& folder, const Config& config, const ScanOptions& options);

}  // namespace myxtts
