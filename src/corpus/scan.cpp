#include "corpus/scan.h"

#include "audio/clip.h"
#include "audio/resample.h"
#include "base/error.h"
#include "base/workers.h"
#include "corpus/metadata.h"
#include "text/utf8.h"

#include <mutex>
#include <optional>
#include <set>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

struct Rejection {
  std::string reason;
};

// The error's sentence without its operation.
std::string sentence(const Error& error) {
  const std::string text = error.what();
  return text.substr(text.find("] ") + 2);
}

fs::path find_clip(const fs::path& folder, const std::string& id) {
  const fs::path relative = fs::path(id).lexically_normal();
  if (relative.is_absolute() || (!relative.empty() && *relative.begin() == "..")) {
    throw Rejection{"its id leads out of the corpus"};
  }
  for (const char* extension : {"", ".wav", ".flac", ".mp3", ".ogg", ".opus", ".WAV"}) {
    fs::path path = folder / "wavs" / (id + extension);
    if (fs::is_regular_file(path)) return path;
  }
  throw Rejection{fmt::format("missing: there is no wavs/{}.wav", id)};
}

class Scanner {
 public:
  Scanner(const fs::path& folder, const Config& config, const MelSpec& mel, bool deep)
      : folder_(folder), config_(config), mel_(mel), deep_(deep) {}

  // Fills `clip` as far as it gets; throws Rejection.
  void scan(const MetadataRow& row, CorpusClip& clip, AudioInfo& info) const {
    clip.id = row.id, clip.speaker = row.speaker, clip.text = row.text;
    if (row.id.empty()) throw Rejection{"the row has no id"};
    clip.path = folder_ / "wavs" / (row.id + ".wav");
    if (row.text.find_first_not_of(" \t") == std::string::npos) throw Rejection{"the text is empty"};
    clip.path = find_clip(folder_, row.id);
    try {
      clip.tokens = static_cast<int64_t>(decode_utf8(row.text).size());
      info = read_clip_info(clip.path);
      clip.samples = static_cast<int64_t>(info.frames);
      if (deep_) clip.samples = static_cast<int64_t>(read_clip(clip.path).samples.size());
    } catch (const Error& error) {
      throw Rejection{"unreadable: " + sentence(error)};
    }
    clip.sample_rate = info.sample_rate;
    const ResampleFilter filter(info.sample_rate, mel_.sample_rate);
    clip.mel_frames = mel_.frames(static_cast<int64_t>(filter.output_length(static_cast<uint64_t>(clip.samples))));
    if (clip.samples == 0) throw Rejection{"it has no samples"};
    if (clip.mel_frames < clip.tokens) {
      throw Rejection{fmt::format("too short: {} mel frames for {} letters", clip.mel_frames, clip.tokens)};
    }
    check_length("letters", clip.tokens, config_.data.max_text_length, "max_text_length");
    if (config_.data.max_mel_frames > 0) {
      check_length("mel frames", clip.mel_frames, config_.data.max_mel_frames, "max_mel_frames");
    }
  }

 private:
  static void check_length(const char* what, int64_t length, int64_t most, const char* setting) {
    if (length > most) throw Rejection{fmt::format("too long: {} {} where data.{} is {}", length, what, setting, most)};
  }

  const fs::path& folder_;
  const Config& config_;
  const MelSpec& mel_;
  bool deep_;
};

}  // namespace

double Corpus::hours() const {
  double seconds = 0;
  for (const CorpusClip& clip : clips) seconds += clip.seconds();
  return seconds / 3600;
}

Corpus scan_corpus(const fs::path& folder, const Config& config, const ScanOptions& options) {
  if (config.data.overlong == "truncate") {
    reject_input("corpus", "data.overlong: truncate is not built yet; use drop or error");
  }
  Corpus corpus;
  corpus.folder = folder;
  corpus.mel = resolve_mel_spec(config);
  const std::vector<MetadataRow> rows = read_metadata(folder, config.data.metadata_format);
  const Scanner scanner(folder, config, corpus.mel, options.deep);
  struct Outcome {
    CorpusClip clip;
    AudioInfo info;
    std::string reason;
  };
  std::vector<Outcome> outcomes(rows.size());
  std::mutex mutex;
  uint64_t done = 0;
  const auto threads = static_cast<size_t>(config.data.num_workers.pick(static_cast<int64_t>(available_cores())));
  parallel_for(rows.size(), threads, [&](size_t i) {
    try {
      scanner.scan(rows[i], outcomes[i].clip, outcomes[i].info);
    } catch (const Rejection& rejection) {
      outcomes[i].reason = rejection.reason;
    }
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(++done, rows.size());
  });

  std::set<std::string> ids;
  for (size_t i = 0; i < rows.size(); ++i) {
    Outcome& outcome = outcomes[i];
    if (outcome.reason.empty() && !ids.insert(rows[i].id).second) outcome.reason = "duplicate: the id was used before";
    if (!outcome.reason.empty()) {
      if (config.data.overlong == "error" && outcome.reason.starts_with("too long")) {
        reject_input("corpus", "{} (line {}): {}; data.overlong is error", rows[i].id, rows[i].line, outcome.reason);
      }
      corpus.rejected.push_back({rows[i].id, outcome.clip.path, outcome.reason, rows[i].line});
      continue;
    }
    ++corpus.sample_rates[outcome.info.sample_rate];
    ++corpus.formats[outcome.info.format];
    corpus.clips.push_back(std::move(outcome.clip));
  }
  return corpus;
}

}  // namespace myxtts
