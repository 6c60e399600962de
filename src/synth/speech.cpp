#include "synth/speech.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/workers.h"
#include "features/cpu/griffin_lim.h"
#include "synth/joins.h"
#include "synth/loaded_voice.h"
#include "text/clauses.h"

#include <algorithm>
#include <chrono>
#include <future>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

// A short first piece, because somebody waits for it. The later ones are longer, because each costs the frames around
// it; by the time one of them is needed, the one before it is being heard.
constexpr int64_t first_piece_frames = 32, piece_growth = 4;

double pause_of(const std::string& sentence) {
  const std::vector<Clause> clauses = split_clauses(sentence);
  return pause_after(clauses.empty() ? '\0' : clauses.back().mark);
}

}  // namespace

struct Speech::State {
  State(const LoadedVoice& loaded, const std::string& said, const SynthesisOptions& how, const SpeakingAs& speaker,
        std::string spoken_language)
      : voice(loaded),
        text(said),
        options(how),
        as(speaker),
        language(std::move(spoken_language)),
        sentences(pieces_of_text(loaded.description, said, language)),
        joiner(loaded.mel.sample_rate) {
    pronounce_next();
  }

  bool in_sentence() const { return mel.defined() && spoken_frames < mel.size(0); }
  void pronounce_next();
  void begin_sentence();
  void speak_piece();
  std::vector<float> griffin_lim_of_sentence() const;

  const LoadedVoice& voice;
  const std::string text;
  const SynthesisOptions options;
  const SpeakingAs as;
  const std::string language;
  const std::vector<std::string> sentences;
  size_t next_sentence = 0;
  std::future<std::vector<uint16_t>> tokens_of_next;  // a process of its own finds them, meanwhile others are spoken
  at::Tensor mel;  // of the sentence that is being spoken, [frames, n_mels] on the CPU
  int64_t spoken_frames = 0, piece_frames = first_piece_frames;
  SpeechJoiner joiner;
  bool spoke = false, over = false;
  SpeakingTimes times;
};

void Speech::State::pronounce_next() {
  if (next_sentence == sentences.size()) return;
  tokens_of_next = std::async(std::launch::async, [this, &sentence = sentences[next_sentence]] {
    return tokens_of_text(voice.description, sentence, language);
  });
}

void Speech::State::begin_sentence() {
  Stopwatch watch;
  const std::vector<uint16_t> tokens = tokens_of_next.get();
  ++next_sentence;
  pronounce_next();
  times.tokens += watch.lap();
  if (tokens.empty()) return;
  mel = voice.runner.synthesize({tokens.begin(), tokens.end()}, options, as).mel;
  spoken_frames = 0;
  times.mel += watch.lap();
}

void Speech::State::speak_piece() {
  const Stopwatch watch;
  const int64_t frames = mel.size(0);
  if (voice.vocoder) {
    const int64_t end = std::min(frames, spoken_frames + piece_frames);
    joiner.add(waveform_part(*voice.vocoder, voice.mel, mel, spoken_frames, end));
    spoken_frames = end;
    piece_frames = std::min(longest_piece_frames, piece_frames * piece_growth);
  } else {
    joiner.add(griffin_lim_of_sentence());
    spoken_frames = frames;
  }
  if (spoken_frames == frames) joiner.end_sentence(pause_of(sentences[next_sentence - 1]) / options.speed);
  spoke = true;
  times.waveform += watch.seconds();
}

std::vector<float> Speech::State::griffin_lim_of_sentence() const {
  GriffinLimOptions how;
  how.threads = available_cores();
  how.seed = options.seed;
  return griffin_lim(voice.mel, {mel.const_data_ptr<float>(), static_cast<size_t>(mel.numel())}, mel.size(0), how);
}

Speech::Speech(const LoadedVoice& voice, const std::string& text, const SynthesisOptions& options, const SpeakingAs& as,
               std::string language)
    : state_(std::make_unique<State>(voice, text, options, as, std::move(language))) {}

Speech::~Speech() = default;
Speech::Speech(Speech&&) noexcept = default;
Speech& Speech::operator=(Speech&&) noexcept = default;

const SpeakingTimes& Speech::times() const { return state_->times; }

bool Speech::ready() const {
  const std::future<std::vector<uint16_t>>& tokens = state_->tokens_of_next;
  return state_->in_sentence() || !tokens.valid() ||
         tokens.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::vector<float> Speech::next() {
  State& state = *state_;
  std::vector<float> samples;
  while (samples.empty() && !state.over) {
    if (state.in_sentence()) {
      state.speak_piece();
      samples = state.joiner.take();
    } else if (state.next_sentence < state.sentences.size()) {
      state.begin_sentence();
    } else {
      state.over = true;
      if (!state.spoke) reject_input("synth", "there is nothing to say in \"{}\"", state.text);
      samples = state.joiner.take_rest();
    }
  }
  return samples;
}

}  // namespace myxtts
