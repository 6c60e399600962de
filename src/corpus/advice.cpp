#include "corpus/advice.h"

#include "audio/level.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/workers.h"
#include "text/utf8.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

namespace myxtts {
namespace {

constexpr double enough_minutes = 5, good_minutes = 15;
constexpr double too_quiet_db = -32;      // of the speech
constexpr double too_little_gap_db = 20;  // between speech and noise
constexpr int many_clipped = 4;
constexpr double long_silence_s = 0.5;
constexpr double off_rate = 2.2;  // times more or fewer characters per second than usual

double decibels(double mean_square) { return 10 * std::log10(std::max(mean_square, 1e-12)); }

// A clip and how bad it is.
struct Found {
  std::string id;
  double badness = 0;
};

std::vector<std::string> worst_first(std::vector<Found> found) {
  std::ranges::stable_sort(found, std::greater(), &Found::badness);
  std::vector<std::string> ids;
  for (Found& clip : found) ids.push_back(std::move(clip.id));
  return ids;
}

struct Examined {
  CorpusClip clip;
  ClipLevels levels;
};

// Those that can be decoded, in their order.
std::vector<Examined> examine(const Corpus& corpus, const AdviceOptions& options) {
  const size_t count = std::min(corpus.index.size(), options.max_decoded);
  std::vector<std::optional<Examined>> all(count);
  std::atomic<uint64_t> done = 0;
  std::mutex reporting;
  parallel_for(count, std::max<size_t>(options.threads, 1), [&](size_t i) {
    const CorpusClip clip = corpus.clip(i * corpus.index.size() / count);
    try {
      const Clip audio = read_clip(clip.place);
      all[i] = Examined{clip, measure_levels(audio.samples, audio.sample_rate)};
    } catch (const Error&) {  // training will replace it, and say so
    }
    const uint64_t finished = ++done;
    const std::lock_guard lock(reporting);
    if (options.progress) options.progress(finished, count);
  });
  std::vector<Examined> examined;
  for (std::optional<Examined>& one : all) {
    if (one) examined.push_back(std::move(*one));
  }
  return examined;
}

void add_if_any(std::vector<Advice>& advice, Advice one) {
  if (!one.clips.empty()) advice.push_back(std::move(one));
}

void add_sound_advice(std::vector<Advice>& advice, const std::vector<Examined>& examined, bool trimmed) {
  std::vector<Found> quiet, noisy, clipped, silent_ends;
  for (const Examined& one : examined) {
    const ClipLevels& levels = one.levels;
    const std::string& id = one.clip.id;
    const double gap = levels.speech_db - levels.noise_db, silence = std::max(levels.lead_s, levels.tail_s);
    if (levels.speech_db < too_quiet_db) quiet.push_back({id, -levels.speech_db});
    if (gap < too_little_gap_db) noisy.push_back({id, -gap});
    if (levels.clipped >= many_clipped) clipped.push_back({id, static_cast<double>(levels.clipped)});
    if (silence > long_silence_s) silent_ends.push_back({id, silence});
  }
  const size_t count = examined.size();
  add_if_any(advice,
             {"quiet", fmt::format("speech is below {} dB", too_quiet_db),
              "record nearer to the microphone, or raise the level of all clips alike", worst_first(quiet), count});
  add_if_any(advice, {"noisy", fmt::format("noise is less than {} dB below the speech", too_little_gap_db),
                      "record in a quieter room, or leave these clips out", worst_first(noisy), count});
  add_if_any(advice, {"clipping", "samples are cut off at full scale",
                      "record with a lower level, or leave these clips out", worst_first(clipped), count});
  if (trimmed) return;
  add_if_any(advice, {"silence_at_ends", fmt::format("more than {} s of silence at an end", long_silence_s),
                      "train with --trim-silence", worst_first(silent_ends), count});
}

// Clips whose texts have far more or fewer characters per second than the others of their language.
void add_text_advice(std::vector<Advice>& advice, const Corpus& corpus) {
  struct Rate {
    std::string id;
    uint32_t language = 0;
    double per_second = 0;
  };
  std::vector<Rate> rates;
  for (size_t i = 0; i < corpus.index.size(); ++i) {
    const CorpusClip clip = corpus.index.clip(i);
    constexpr size_t fewest = 12;  // characters: a word alone may be said slowly
    const size_t characters = decode_utf8(clip.text).size();
    if (characters >= fewest) {
      rates.push_back({clip.id, corpus.index.labels()[i].language, static_cast<double>(characters) / clip.seconds()});
    }
  }
  std::vector<Found> found;
  for (uint32_t language = 0; language < corpus.index.summary().languages.size(); ++language) {
    std::vector<double> of_language;
    for (const Rate& rate : rates) {
      if (rate.language == language) of_language.push_back(rate.per_second);
    }
    constexpr size_t few = 8;
    if (of_language.size() < few) continue;
    const auto middle = of_language.begin() + static_cast<std::ptrdiff_t>(of_language.size() / 2);
    std::nth_element(of_language.begin(), middle, of_language.end());
    for (const Rate& rate : rates) {
      const double times = std::max(rate.per_second / *middle, *middle / rate.per_second);
      if (rate.language == language && times > off_rate) found.push_back({rate.id, times});
    }
  }
  add_if_any(advice, {"text_does_not_fit", "the text is far too long or too short for the clip",
                      "compare these texts with their clips", worst_first(found), rates.size()});
}

void add_amount_advice(std::vector<Advice>& advice, const Corpus& corpus) {
  const double minutes = corpus.index.summary().seconds / 60;
  if (minutes >= good_minutes) return;
  const bool few = minutes < enough_minutes;
  advice.push_back({few ? "too_little_speech" : "little_speech",
                    fmt::format("{:.1f} minutes of speech", minutes),
                    few ? "record at least 5 minutes, better 15, and begin with another voice by train --from"
                        : "begin with another voice by train --from; 15 minutes or more sound better",
                    {},
                    corpus.index.size()});
}

// Of clips with a lower rate than the mel the upper bands are empty.
void add_band_advice(std::vector<Advice>& advice, const Corpus& corpus) {
  const double top = corpus.mel.f_max > 0 ? corpus.mel.f_max : corpus.mel.sample_rate / 2.0;
  std::vector<Found> found;
  for (size_t i = 0; i < corpus.index.size(); ++i) {
    const CorpusClip clip = corpus.index.clip(i);
    if (clip.sample_rate / 2.0 < 0.95 * top) found.push_back({clip.id, -static_cast<double>(clip.sample_rate)});
  }
  add_if_any(
      advice,
      {"narrow_band", fmt::format("recorded at a rate without the frequencies up to {:.0f} Hz of the mel", top),
       "record at 24 kHz or more; the voice will sound like the clips do", worst_first(found), corpus.index.size()});
}

}  // namespace

ClipLevels measure_levels(std::span<const float> samples, int sample_rate) {
  ClipLevels levels;
  const auto frame = static_cast<size_t>(std::max(1, sample_rate / 50));  // 20 ms
  std::vector<double> energies;
  for (size_t at = 0; at + frame <= samples.size(); at += frame) {
    double sum = 0;
    for (const float x : samples.subspan(at, frame)) sum += static_cast<double>(x) * x;
    energies.push_back(sum / static_cast<double>(frame));
  }
  if (!energies.empty()) {
    std::ranges::sort(energies);
    const size_t tenth = std::max<size_t>(1, energies.size() / 10);
    const auto mean = [&](auto begin) {
      return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(tenth), 0.0) / static_cast<double>(tenth);
    };
    levels.noise_db = decibels(mean(energies.begin())), levels.speech_db = decibels(mean(energies.rbegin()));
  }
  constexpr float full_scale = 0.999F;
  constexpr int run_samples = 3;
  int run = 0;
  for (const float x : samples) {
    run = std::abs(x) >= full_scale ? run + 1 : 0;
    levels.clipped += run == run_samples;
  }
  const SampleRange sounding = sounding_part(samples, {.below_peak_db = 40});
  if (sounding.end > sounding.first) {
    levels.lead_s = static_cast<double>(sounding.first) / sample_rate;
    levels.tail_s = static_cast<double>(samples.size() - sounding.end) / sample_rate;
  }
  return levels;
}

std::vector<Advice> advise(const Corpus& corpus, const DataConfig& data, const AdviceOptions& options) {
  std::vector<Advice> advice;
  if (corpus.index.size() == 0) return advice;
  add_amount_advice(advice, corpus);
  add_sound_advice(advice, examine(corpus, options), data.trim_silence);
  add_text_advice(advice, corpus);
  add_band_advice(advice, corpus);
  return advice;
}

}  // namespace myxtts
