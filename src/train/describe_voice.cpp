#include "train/describe_voice.h"

namespace myxtts {
namespace {

double dropout_for(const TrainingConfig& training, double seconds) {
  if (training.dropout >= 0) return training.dropout;
  constexpr double small_corpus_s = 10 * 3600;
  return seconds < small_corpus_s ? 0.1 : 0.05;
}

}  // namespace

VoiceDescription describe_voice(const Config& config, const Corpus& corpus) {
  VoiceDescription voice;
  voice.config = config;
  voice.config.data.text_tokens = corpus.text_tokens;
  voice.config.training.dropout = dropout_for(config.training, corpus.index.summary().seconds);
  voice.vocabulary = corpus.vocabulary;
  voice.mel_mean = corpus.index.summary().mel_mean;
  voice.mel_std = corpus.index.summary().mel_std > 0 ? corpus.index.summary().mel_std : 1;
  return voice;
}

}  // namespace myxtts
