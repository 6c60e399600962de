#include "corpus/corpus.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/workers.h"
#include "corpus/rows.h"
#include "corpus/scan.h"
#include "settings/settings.h"
#include "text/phonemes.h"
#include "text/utf8.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <optional>
#include <unordered_set>

#include <sys/stat.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr size_t rows_at_once = 4096;
constexpr size_t clips_for_mean = 512;

// All that decides what the index holds, apart from the files.
uint64_t settings_hash(const Config& config, const MelSpec& mel, const PrepareOptions& options) {
  Config used = config;
  if (!options.validation) used.data.val_share = 0;
  std::string text = "index 5";
  for (const Setting& setting : all_settings()) {
    if (setting.in_index) text += fmt::format("\n{}={}", setting.name(), value_text(setting, used));
  }
  text += "\n" + mel.description();
  if (!options.texts) text += "\nwithout texts";
  uint64_t hash = hash_text(text);
  if (options.symbols != nullptr) {
    for (const char32_t symbol : *options.symbols) hash = hash_bytes(&symbol, sizeof(symbol), hash);
  }
  return hash;
}

int64_t time_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return -1;
  return status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

uint64_t files_hash(const CorpusLayout& layout) {
  uint64_t hash = 0;
  for (const fs::path& file : layout.files) {
    const std::string text = fmt::format("{}|{}|{}", file.filename().string(), fs::file_size(file), time_of(file));
    hash = hash_text(text, hash);
  }
  return hash;
}

// Beside the corpus where that can be written, otherwise in the user's cache.
fs::path index_folder(const CorpusLayout& layout) {
  fs::path beside = layout.folder / ".myxtts";
  std::error_code none;
  fs::create_directory(beside, none);
  if (fs::is_directory(beside, none) && ::access(beside.c_str(), W_OK) == 0) {
    remove_leftovers(beside);
    return beside;
  }
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  fs::path folder = cache != nullptr ? fs::path(cache) : fs::path(home != nullptr ? home : "/tmp") / ".cache";
  folder = folder / "myxtts" / hash_hex(hash_text(fs::weakly_canonical(layout.folder).string()));
  fs::create_directories(folder, none);
  if (none) reject_input("corpus", "neither {} nor {} can be written", beside.string(), folder.string());
  remove_leftovers(folder);
  return folder;
}

class IndexMaker {
 public:
  IndexMaker(const CorpusLayout& layout, const Config& config, const MelSpec& mel, const PrepareOptions& options,
             const fs::path& path)
      : layout_(layout),
        config_(config),
        mel_(mel),
        options_(options),
        folder_(path.parent_path()),
        threads_(static_cast<size_t>(config.data.num_workers.pick(static_cast<int64_t>(available_cores())))),
        scanner_(layout, config, mel, options.deep, options.texts, options.symbols),
        writer_(path) {}

  void make(const IndexStamp& stamp) {
    total_ = count_rows(layout_);
    read_rows(layout_, config_.data.metadata_format, [this](CorpusRow&& row) {
      rows_.push_back(std::move(row));
      if (rows_.size() == rows_at_once) scan_rows();
    });
    scan_rows();
    if (done_ == 0) reject_input("corpus", "{} has no rows", layout_.files.front().string());
    hold_out();
    measure();
    for (const char32_t symbol : symbols_) summary_.symbols.push_back(encode_utf8({symbol}));
    summary_.deep = options_.deep;
    writer_.finish(stamp, summary_);
  }

 private:
  void scan_rows() {
    std::vector<ScannedRow> scanned(rows_.size());
    parallel_for(rows_.size(), threads_, [&](size_t i) { scanned[i] = scanner_.check_text(rows_[i]); });
    if (config_.data.text_tokens == "phonemes") phonemize(scanned);
    std::atomic<uint64_t> done = done_;
    std::mutex mutex;
    parallel_for(rows_.size(), threads_, [&](size_t i) {
      scanner_.check_clip(rows_[i], scanned[i]);
      const std::lock_guard lock(mutex);
      ++done;
      if (options_.progress) options_.progress(done, std::max<uint64_t>(total_, done));
    });
    for (size_t i = 0; i < rows_.size(); ++i) take(rows_[i], scanned[i]);
    done_ = done;
    rows_.clear();
  }

  // Texts to phonemes, all of these rows at once, language by language.
  void phonemize(std::vector<ScannedRow>& scanned) {
    std::map<std::string, std::vector<ScannedRow*>> by_language;
    for (ScannedRow& row : scanned) {
      if (!row.rejected) by_language[row.clip.language].push_back(&row);
    }
    for (const auto& [language, rows] : by_language) {
      // The corpus's own language must be known; a row in another one can be left out.
      if (language == config_.data.language || phonemes_available(language)) {
        phonemize(language, rows);
        continue;
      }
      for (ScannedRow* row : rows) {
        row->rejected = RejectionReason{Rejection::no_phonemes,
                                        fmt::format("espeak-ng does not support the language '{}'", language)};
      }
    }
  }

  void phonemize(const std::string& language, const std::vector<ScannedRow*>& rows) {
    std::vector<std::string> texts;
    for (const ScannedRow* row : rows) texts.push_back(row->clip.text);
    const std::vector<std::string> spoken = to_phonemes(texts, language, folder_ / "phonemes.jsonl", threads_, {});
    size_t letters = 0, phonemes = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      CorpusClip& clip = rows[i]->clip;
      clip.phonemes = spoken[i];
      letters += decode_utf8(clip.text).size(), phonemes += decode_utf8(clip.phonemes).size();
      if (clip.phonemes.empty()) {
        rows[i]->rejected = RejectionReason{Rejection::no_phonemes, "espeak-ng has no phonemes for the text"};
      }
    }
    // espeak-ng names the letters of a foreign script one by one.
    constexpr size_t max_phonemes_per_letter = 3;
    if (phonemes > max_phonemes_per_letter * letters) {
      reject_input("corpus", "these do not look like texts in '{}': espeak-ng makes {} phonemes of {} letters",
                   language, phonemes, letters,
                   way_out("set --language to that of the texts, or --text-tokens characters"));
    }
  }

  void take(const CorpusRow& row, ScannedRow& scanned) {
    CorpusClip& clip = scanned.clip;
    const fs::path relative = clip.place.path.lexically_relative(layout_.folder);
    if (!relative.empty() && *relative.begin() != "..") clip.place.path = relative;
    const uint64_t id = hash_text(clip.id);
    if (!scanned.rejected && !ids_.insert(id).second) {
      scanned.rejected = RejectionReason{Rejection::duplicate_id, "duplicate: the id was used before"};
    }
    if (scanned.rejected) {
      if (config_.data.overlong == "error" && scanned.rejected->code == Rejection::too_long) {
        reject_input("corpus", "{} (line {}): {}; data.overlong is error", clip.id, row.line, scanned.rejected->text);
      }
      summary_.rejected.push_back(
          {clip.id, clip.place.path.string(), scanned.rejected->code, scanned.rejected->text, row.line});
      return;
    }
    if (!scanned.truncated.empty()) {
      summary_.truncated.push_back(
          {clip.id, clip.place.path.string(), Rejection::too_long, scanned.truncated, row.line});
    }
    ++summary_.sample_rates[fmt::format("{}", clip.sample_rate)];
    ++summary_.formats[scanned.format];
    summary_.seconds += clip.seconds();
    for (const char32_t symbol : decode_utf8(clip.symbols())) symbols_.insert(symbol);
    if (scanned.mel.count > 0) {
      mel_sums_.add(scanned.mel), ++summary_.mel_measured_clips;
    } else {
      remember_for_mean(id, clip);
    }
    id_hashes_.push_back(id);
    writer_.add(clip);
  }

  // The clips with the smallest hashes: the same ones every time, spread over the corpus.
  void remember_for_mean(uint64_t id, const CorpusClip& clip) {
    for_mean_.emplace(id, clip);
    if (for_mean_.size() > clips_for_mean) for_mean_.erase(std::prev(for_mean_.end()));
  }

  void measure() {
    std::vector<CorpusClip> clips;
    for (auto& [id, clip] : for_mean_) clips.push_back(std::move(clip));
    std::vector<MelSums> sums(clips.size());
    parallel_for(clips.size(), threads_, [&](size_t i) {
      clips[i].place.path = layout_.folder / clips[i].place.path;
      try {
        sums[i] = measure_mel(mel_, clips[i]);
      } catch (const Error&) {  // its header is fine, the rest is not: it will be replaced when its turn comes
      }
    });
    for (const MelSums& one : sums) {
      mel_sums_.add(one);
      if (one.count > 0) ++summary_.mel_measured_clips;
    }
    summary_.mel_mean = mel_sums_.mean(), summary_.mel_std = mel_sums_.std();
  }

  // A fixed share of each speaker's clips, by the ids alone: a clip that comes or goes moves no other of another
  // speaker from one side to the other, and of its own speaker the last one or two. What whole clips of a speaker are
  // too little for is made up from all.
  void hold_out() {
    if (layout_.has_validation || !options_.validation || config_.data.val_share <= 0 || id_hashes_.size() < 2) return;
    const auto share_of = [&](size_t clips) {
      return static_cast<size_t>(config_.data.val_share * static_cast<double>(clips));
    };
    const size_t wanted = std::clamp<size_t>(share_of(id_hashes_.size()), 1, id_hashes_.size() - 1);
    std::vector<size_t> order(id_hashes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t clip) { return id_hashes_[clip]; });
    std::map<uint32_t, size_t> left;
    for (const ClipLabels& labels : writer_.labels()) ++left[labels.speaker];
    for (auto& [speaker, clips] : left) clips = share_of(clips);
    size_t held_out = 0;
    const auto take = [&](size_t clip) { writer_.lengths()[clip].held_out = 1, ++held_out; };
    for (const size_t clip : order) {
      size_t& of_speaker = left[writer_.labels()[clip].speaker];
      if (of_speaker > 0) --of_speaker, take(clip);
    }
    for (const size_t clip : order) {
      if (held_out < wanted && writer_.lengths()[clip].held_out == 0) take(clip);
    }
  }

  const CorpusLayout& layout_;
  const Config& config_;
  const MelSpec& mel_;
  const PrepareOptions& options_;
  const fs::path folder_;
  const size_t threads_;
  const Scanner scanner_;
  IndexWriter writer_;
  std::vector<CorpusRow> rows_;
  uint64_t total_ = 0, done_ = 0;
  CorpusSummary summary_;
  MelSums mel_sums_;
  std::set<char32_t> symbols_;
  std::unordered_set<uint64_t> ids_;
  std::vector<uint64_t> id_hashes_;
  std::map<uint64_t, CorpusClip> for_mean_;
};

bool a_file_changed(const CorpusIndex& index, const fs::path& folder) {
  for (size_t i = 0; i < index.size(); ++i) {
    const CorpusClip clip = index.clip(i);
    if (time_of(folder / clip.place.path) != clip.time_ns) return true;
  }
  const int64_t made_ns = time_of(index.path());
  for (const RejectedClip& clip : index.summary().rejected) {
    const int64_t time_ns = time_of(folder / clip.path);
    if (time_ns > made_ns || (time_ns >= 0 && clip.code == Rejection::missing)) return true;
  }
  return false;
}

// Why the index cannot be used, or nothing.
std::optional<std::string> outdated(const CorpusIndex& index, const IndexStamp& stamp, const CorpusLayout& layout,
                                    const PrepareOptions& options) {
  if (index.stamp().files != stamp.files) return "the metadata has changed";
  if (!(index.stamp() == stamp)) return "the settings have changed";
  if (options.deep && !index.summary().deep) return "every clip is to be decoded";
  if (options.check_files && a_file_changed(index, layout.folder)) return "a clip has changed";
  return std::nullopt;
}

// The unit of a token; `auto` is phonemes if espeak-ng speaks the language.
std::string text_tokens_of(const DataConfig& data, const PrepareOptions& options) {
  if (!options.texts) return "characters";
  if (data.text_tokens != "auto") return data.text_tokens;
  if (phonemes_available(data.language)) return "phonemes";
  if (options.say) {
    options.say(fmt::format(
        "tokens are characters, because espeak-ng {}: the voice must learn to pronounce from its clips alone, which "
        "takes far more of them",
        phonemes_available() ? fmt::format("does not support the language '{}'", data.language) : "is not installed"));
  }
  return "characters";
}

// A corpus from anywhere could name any file of this machine as its own.
void refuse_outside(const CorpusLayout& layout) {
  const fs::path real_folder = fs::weakly_canonical(layout.folder);
  for (const fs::path& file : layout.files) {
    if (const auto outside = place_outside(real_folder, file)) {
      reject_input("corpus", "{} is {}, outside of the corpus", file.string(), outside->string(),
                   way_out("name that file itself, or set data.allow_outside: true if you trust the corpus"));
    }
  }
}

std::set<char32_t> symbols_of(const CorpusSummary& summary) {
  std::set<char32_t> symbols;
  for (const std::string& symbol : summary.symbols) {
    for (const char32_t letter : decode_utf8(symbol)) symbols.insert(letter);
  }
  return symbols;
}

}  // namespace

CorpusClip Corpus::clip(size_t number) const {
  CorpusClip clip = index.clip(number);
  clip.place.path = folder / clip.place.path;
  return clip;
}

namespace {

std::vector<int32_t> numbers_in(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  std::map<std::string, int32_t> numbers;
  for (size_t i = 0; i < known.size(); ++i) numbers.emplace(known[i], static_cast<int32_t>(i));
  std::vector<int32_t> found;
  for (const std::string& name : names) found.push_back(numbers.contains(name) ? numbers[name] : -1);
  return found;
}

int32_t number_of(const std::vector<int32_t>& numbers, uint32_t label) {
  return numbers.empty() ? static_cast<int32_t>(label) : numbers[label];
}

}  // namespace

void Corpus::number_as(const std::vector<std::string>& speakers, const std::vector<std::string>& languages) {
  speaker_numbers = numbers_in(index.summary().speakers, speakers);
  language_numbers = numbers_in(index.summary().languages, languages);
}

int32_t Corpus::speaker_number(const ClipLabels& labels) const { return number_of(speaker_numbers, labels.speaker); }
int32_t Corpus::language_number(const ClipLabels& labels) const { return number_of(language_numbers, labels.language); }

Corpus open_corpus(const fs::path& where, const Config& wanted, const PrepareOptions& options) try {
  Config config = wanted;
  config.data.text_tokens = text_tokens_of(wanted.data, options);
  const MelSpec mel = resolve_mel_spec(config);
  const CorpusLayout layout = find_layout(where);
  if (!config.data.allow_outside && fs::is_directory(where)) refuse_outside(layout);
  const IndexStamp stamp{settings_hash(config, mel, options), files_hash(layout)};
  const std::string name = hash_hex(hash_text(layout.files.front().filename().string(), stamp.settings)) + ".index";
  const fs::path path = index_folder(layout) / name;
  const auto opened = [&](CorpusIndex index) {
    const Vocabulary vocabulary(options.symbols != nullptr ? *options.symbols : symbols_of(index.summary()));
    return Corpus{layout.folder, mel, std::move(index), vocabulary, config.data.text_tokens, config.data.blank_tokens};
  };
  if (fs::exists(path)) {
    std::string reason;
    try {
      CorpusIndex index(path);
      const std::optional<std::string> why = outdated(index, stamp, layout, options);
      if (!why) return opened(std::move(index));
      reason = *why;
    } catch (const Error& error) {
      reason = error.what();
    }
    if (options.say) options.say(fmt::format("rebuilding the index: {}", reason));
  }
  IndexMaker(layout, config, mel, options, path).make(stamp);
  return opened(CorpusIndex(path));
} catch (const fs::filesystem_error& error) {
  reject_input("corpus", "{}: {}", error.path1().string(), error.code().message());
}

}  // namespace myxtts
