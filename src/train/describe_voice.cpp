#include "train/describe_voice.h"

#include "train/fit_settings.h"

namespace myxtts {

VoiceDescription describe_voice(const Config& config, const Corpus& corpus) {
  VoiceDescription voice;
  voice.config = fit_settings(config, corpus.index.summary().seconds / 3600);
  voice.config.data.text_tokens = corpus.text_tokens;
  voice.vocabulary = corpus.vocabulary;
  voice.mel_mean = corpus.index.summary().mel_mean;
  voice.mel_std = corpus.index.summary().mel_std > 0 ? corpus.index.summary().mel_std : 1;
  return voice;
}

}  // namespace myxtts
