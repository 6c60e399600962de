#include "train/describe_voice.h"

#include "train/fit_settings.h"

#include <algorithm>
#include <map>

namespace myxtts {
namespace {

// What the voice speaks: the language that was asked for, if any clip has it; otherwise the one with most speech.
std::string language_of(const CorpusSummary& summary, const std::string& wanted) {
  if (summary.languages.empty() || std::ranges::find(summary.languages, wanted) != summary.languages.end()) {
    return wanted;
  }
  std::map<uint32_t, double> seconds;
  for (const SpeakerTime& time : summary.speaker_times) seconds[time.labels.language] += time.seconds;
  const auto longest = std::ranges::max_element(seconds, {}, [](const auto& entry) { return entry.second; });
  return summary.languages[longest->first];
}

}  // namespace

VoiceDescription describe_voice(const Config& config, const Corpus& corpus) {
  VoiceDescription voice;
  voice.config = fit_settings(config, corpus.index.summary().hours());
  voice.config.data.text_tokens = corpus.text_tokens;
  voice.config.data.language = language_of(corpus.index.summary(), config.data.language);
  voice.vocabulary = corpus.vocabulary;
  const CorpusSummary& summary = corpus.index.summary();
  if (summary.speakers.size() > 1 || summary.languages.size() > 1) {
    voice.speakers = summary.speakers, voice.languages = summary.languages;
  }
  voice.mel_mean = corpus.index.summary().mel_mean;
  voice.mel_std = corpus.index.summary().mel_std > 0 ? corpus.index.summary().mel_std : 1;
  return voice;
}

}  // namespace myxtts
