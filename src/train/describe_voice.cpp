#include "train/describe_voice.h"

#include "train/fit_settings.h"

#include <algorithm>
#include <map>

namespace myxtts {
namespace {

// The names of `first`, then those of `second` that are not among them.
std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  for (const std::string& name : second) {
    if (std::ranges::find(first, name) == first.end()) first.push_back(name);
  }
  return first;
}

// The name with most speech; `label` picks what is named.
std::string longest(const CorpusSummary& summary, const std::vector<std::string>& names, uint32_t ClipLabels::*label) {
  std::map<uint32_t, double> seconds;
  for (const SpeakerTime& time : summary.speaker_times) seconds[time.labels.*label] += time.seconds;
  const auto found = std::ranges::max_element(seconds, {}, [](const auto& entry) { return entry.second; });
  return found == seconds.end() ? std::string() : names[found->first];
}

}  // namespace

VoiceDescription describe_voice(const Config& config, const Corpus& corpus, const VoiceDescription* origin) {
  const CorpusSummary& summary = corpus.index.summary();
  VoiceDescription voice;
  voice.config = fit_settings(config, summary.hours());
  voice.config.data.text_tokens = corpus.text_tokens;
  voice.vocabulary = corpus.vocabulary;
  voice.mel_mean = summary.mel_mean;
  voice.mel_std = summary.mel_std > 0 ? summary.mel_std : 1;
  const bool conditioned = origin != nullptr && !origin->speakers.empty();
  if (conditioned || summary.speakers.size() > 1 || summary.languages.size() > 1) {
    voice.speakers = summary.speakers, voice.languages = summary.languages;
    voice.default_speaker = longest(summary, summary.speakers, &ClipLabels::speaker);
  }
  // What it speaks unless it is told otherwise: the language that was asked for, if any clip has it.
  std::string& language = voice.config.data.language;
  if (!summary.languages.empty() && std::ranges::find(summary.languages, language) == summary.languages.end()) {
    language = longest(summary, summary.languages, &ClipLabels::language);
  }
  if (origin == nullptr) return voice;
  std::set<char32_t> symbols = origin->vocabulary.symbols();
  symbols.merge(corpus.vocabulary.symbols());
  voice.vocabulary = Vocabulary(symbols);
  voice.mel_mean = origin->mel_mean, voice.mel_std = origin->mel_std;
  voice.convolutions = origin->convolutions;
  if (!voice.speakers.empty()) {
    voice.speakers = joined(origin->speakers, voice.speakers);
    voice.languages = joined(origin->languages, voice.languages);
  }
  return voice;
}

}  // namespace myxtts
