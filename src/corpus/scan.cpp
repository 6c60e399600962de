#include "corpus/scan.h"

#include "audio/level.h"
#include "audio/resample.h"
#include "base/error.h"
#include "corpus/pack.h"
#include "features/mel.h"
#include "text/cleaner.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <algorithm>
#include <cmath>

#include <sys/stat.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr float silence = 1e-3F;  // a thousandth of full scale: -60 dB

// Calls `work`; an Error that it throws, or memory that it lacks, rejects the row.
template <typename Work>
void readable(Rejection otherwise, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    throw RejectionReason{otherwise, "unreadable: " + error.sentence()};
  } catch (const std::bad_alloc&) {
    throw RejectionReason{otherwise, "unreadable: there is not enough memory for it"};
  }
}

fs::path find_clip(const fs::path& folder, const std::string& id) {
  bool is_folder = false;
  for (const char* ending : {"", ".wav", ".flac", ".mp3", ".ogg", ".opus", ".WAV"}) {
    fs::path path = folder / "wavs" / (id + ending);
    std::error_code none;
    if (fs::is_regular_file(path, none)) return path;
    is_folder |= fs::is_directory(path, none);
  }
  if (is_folder) throw RejectionReason{Rejection::unreadable, fmt::format("wavs/{} is a folder, not a clip", id)};
  throw RejectionReason{Rejection::missing, fmt::format("missing: there is no wavs/{}.wav", id)};
}

bool is_loud(std::span<const float> samples) {
  return std::any_of(samples.begin(), samples.end(), [](float x) { return std::abs(x) > silence; });
}

// Three short probes are enough for a clip that is not silent; only a silent one is read to its end.
bool is_silent(const ClipPlace& place, uint64_t samples) {
  constexpr uint64_t probe = 2048;
  for (const double where : {0.5, 0.25, 0.75}) {
    const auto first = static_cast<uint64_t>(static_cast<double>(samples) * where);
    if (is_loud(read_clip(place, first, probe).samples)) return false;
  }
  bool loud = false;
  read_samples(place, 0, whole_clip, [&](std::span<const float> block) { return !(loud = is_loud(block)); });
  return !loud;
}

int64_t frames_of(const MelSpec& mel, const CorpusClip& clip) {
  const ResampleFilter filter(clip.sample_rate, mel.sample_rate);
  return mel.frames(static_cast<int64_t>(filter.output_length(clip.samples)));
}

MelSums sums_of(const MelSpec& mel, const CorpusClip& clip, std::span<const float> samples) {
  MelSums sums;
  for (const float x : MelCpu(mel).compute(resample(samples, clip.sample_rate, mel.sample_rate)).values) {
    sums.count += 1, sums.sum += x, sums.squares += static_cast<double>(x) * x;
  }
  return sums;
}

}  // namespace

void MelSums::add(const MelSums& other) { count += other.count, sum += other.sum, squares += other.squares; }
double MelSums::mean() const { return count > 0 ? sum / count : 0.0; }
double MelSums::std() const {
  const double variance = count > 0 ? squares / count - mean() * mean() : 1.0;
  return std::sqrt(std::max(variance, 1e-12));
}

MelSums measure_mel(const MelSpec& mel, const CorpusClip& clip) {
  return sums_of(mel, clip, read_clip(clip.place, clip.first_sample, clip.samples).samples);
}

Scanner::Scanner(const CorpusLayout& layout, const Config& config, const MelSpec& mel, bool deep, bool texts,
                 const std::set<char32_t>* symbols)
    : layout_(layout), config_(config), mel_(mel), deep_(deep), texts_(texts), symbols_(symbols) {}

// Whatever a row says, and wherever links point to.
void Scanner::stay_inside(const fs::path& clip) const {
  if (layout_.root == nullptr) return;
  const std::optional<fs::path> outside = layout_.root->outside(clip);
  if (!outside) return;
  throw RejectionReason{
      Rejection::outside,
      fmt::format("it leads out of the corpus, to {}; set data.allow_outside: true if you trust the corpus",
                  outside->string())};
}

ScannedRow Scanner::check_text(const CorpusRow& row) const {
  ScannedRow scanned;
  scanned.clip.id = row.id, scanned.clip.speaker = row.speaker;
  scanned.clip.language = row.language.empty() ? config_.data.language : row.language;
  scanned.clip.length.held_out = row.held_out ? 1 : 0;
  scanned.clip.place = row.place ? *row.place : ClipPlace(layout_.folder / "wavs" / (row.id + ".wav"));
  try {
    if (row.problem) throw RejectionReason(*row.problem);
    if (row.id.empty()) throw RejectionReason{Rejection::bad_row, "the row has no id"};
    if (row.id.find('\0') != std::string::npos) throw RejectionReason{Rejection::bad_row, "its id has a zero byte"};
    if (!texts_) return scanned;
    readable(Rejection::bad_text, [&] {
      for (const char32_t letter : decode_utf8(row.text)) {
        if (!is_text(letter) && letter != U'\r') {
          throw RejectionReason{Rejection::unknown_character,
                                fmt::format("unknown character U+{:04X} in the text", static_cast<uint32_t>(letter))};
        }
      }
      scanned.clip.text = clean_text(row.text, scanned.clip.language);
    });
    if (row.text.find_first_not_of(" \t\r\n") == std::string::npos)
      throw RejectionReason{Rejection::empty_text, "the text is empty"};
    if (scanned.clip.text.empty())
      throw RejectionReason{Rejection::empty_text, "nothing is left of the text after cleaning"};
  } catch (const RejectionReason& reason) {
    scanned.rejected = reason;
  }
  return scanned;
}

void Scanner::check_clip(const CorpusRow& row, ScannedRow& scanned) const {
  if (scanned.rejected) return;
  try {
    for (const char32_t letter : decode_utf8(scanned.clip.symbols())) {
      if (symbols_ != nullptr && !symbols_->contains(letter)) {
        throw RejectionReason{Rejection::unknown_character,
                              fmt::format("unknown character {} (U+{:04X}): it is not in the vocabulary",
                                          encode_utf8({letter}), static_cast<uint32_t>(letter))};
      }
    }
    read_header(row, scanned);
    const bool trimmed = config_.data.trim_silence;
    if (!trimmed) fit_lengths(scanned);  // before anything is decoded
    if (deep_ || trimmed) {
      decode(row, scanned);
      fit_lengths(scanned);
      return;
    }
    readable(Rejection::unreadable, [&] {
      if (is_silent(scanned.clip.place, scanned.clip.samples)) {
        throw RejectionReason{Rejection::silent, "silent: no sample is above -60 dB"};
      }
    });
  } catch (const RejectionReason& reason) {
    scanned.rejected = reason;
  }
}

void Scanner::read_header(const CorpusRow& row, ScannedRow& scanned) const {
  CorpusClip& clip = scanned.clip;
  stay_inside(row.place ? row.place->path : layout_.folder / "wavs" / row.id);
  if (!row.place) clip.place = ClipPlace(find_clip(layout_.folder, row.id));
  stay_inside(clip.place.path);
  clip.place.root = layout_.root;
  struct stat status {};
  if (::stat(clip.place.path.c_str(), &status) != 0) {
    throw RejectionReason{Rejection::missing, fmt::format("missing: there is no {}", clip.place.path.string())};
  }
  clip.time_ns = status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  readable(Rejection::unreadable, [&] {
    const AudioInfo info = read_clip_info(clip.place);
    clip.sample_rate = info.sample_rate, clip.samples = info.frames;
    scanned.format = info.format, clip.wav = info.format.starts_with("wav");
  });
  if (!clip.place.part) clip.place.bytes = static_cast<uint64_t>(status.st_size);
  if (clip.samples == 0) throw RejectionReason{Rejection::no_samples, "it has no samples"};
  const uint64_t resampled = ResampleFilter(clip.sample_rate, mel_.sample_rate).output_length(clip.samples);
  if (resampled > max_clip_samples) {
    throw RejectionReason{Rejection::too_long, fmt::format("too long: {} samples at {} Hz; at most {} are read",
                                                           resampled, mel_.sample_rate, max_clip_samples)};
  }
  if (row.seconds > 0 && std::abs(row.seconds - clip.seconds()) > 0.1 + 0.05 * clip.seconds()) {
    throw RejectionReason{
        Rejection::wrong_duration,
        fmt::format("it lasts {:.2f} s where the manifest's duration is {:.2f}", clip.seconds(), row.seconds)};
  }
}

void Scanner::decode(const CorpusRow& row, ScannedRow& scanned) const {
  CorpusClip& clip = scanned.clip;
  readable(Rejection::unreadable, [&] {
    if (row.hash != 0) check_packed(clip.place, row.hash);
    const Clip audio = read_clip(clip.place, 0, clip.samples);
    clip.samples = audio.samples.size();
    if (!is_loud(audio.samples)) throw RejectionReason{Rejection::silent, "silent: no sample is above -60 dB"};
    if (config_.data.trim_silence) {
      const SampleRange range = sounding_part(audio.samples, {});
      clip.first_sample = range.first, clip.samples = range.end - range.first;
    }
    scanned.mel = sums_of(mel_, clip, std::span(audio.samples).subspan(clip.first_sample, clip.samples));
  });
}

void Scanner::fit_lengths(ScannedRow& scanned) const {
  CorpusClip& clip = scanned.clip;
  const DataConfig& data = config_.data;
  std::vector<char32_t> letters = decode_utf8(clip.symbols());
  const auto symbols = static_cast<int64_t>(letters.size());
  const auto with_blanks = [&](int64_t count) { return data.blank_tokens ? 2 * count + 1 : count; };
  int64_t tokens = with_blanks(symbols), frames = frames_of(mel_, clip);
  const bool cut = data.overlong == "truncate";
  const int64_t max_frames = data.max_mel_frames;
  if (symbols > data.max_text_length) {
    if (!cut) {
      throw RejectionReason{Rejection::too_long, fmt::format("too long: {} tokens where data.max_text_length is {}",
                                                             symbols, data.max_text_length)};
    }
    scanned.truncated = fmt::format("{} of {} tokens kept", data.max_text_length, symbols);
    letters.resize(static_cast<size_t>(data.max_text_length));
    (clip.phonemes.empty() ? clip.text : clip.phonemes) = encode_utf8(letters);
    tokens = with_blanks(data.max_text_length);
  }
  if (max_frames > 0 && frames > max_frames) {
    if (!cut) {
      throw RejectionReason{Rejection::too_long,
                            fmt::format("too long: {} mel frames where data.max_mel_frames is {}", frames, max_frames)};
    }
    scanned.truncated +=
        fmt::format("{}{} of {} mel frames kept", scanned.truncated.empty() ? "" : ", ", max_frames, frames);
    // The longest part that has no more frames: a frame's worth too little at most.
    clip.samples = static_cast<uint64_t>(static_cast<double>(clip.samples) * static_cast<double>(max_frames) /
                                         static_cast<double>(frames));
    while (frames_of(mel_, clip) > max_frames) clip.samples -= std::min<uint64_t>(clip.samples, 32);
    frames = frames_of(mel_, clip);
  }
  if (frames < tokens)
    throw RejectionReason{Rejection::too_short, fmt::format("too short: {} mel frames for {} tokens", frames, tokens)};
  clip.length.mel_frames = static_cast<uint32_t>(frames);
  clip.length.tokens = static_cast<uint32_t>(tokens) & 0x7FFFFFFFU;
}

}  // namespace myxtts
