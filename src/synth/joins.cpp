#include "synth/joins.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace myxtts {
namespace {

constexpr double fade_s = 0.005;
constexpr float silence = 0.003F;  // -50 dB of full scale

bool is_silent(float sample) { return std::abs(sample) < silence; }

size_t fade_samples(int sample_rate) { return static_cast<size_t>(fade_s * sample_rate); }

size_t silent_head(std::span<const float> sound) {
  return static_cast<size_t>(std::ranges::find_if_not(sound, is_silent) - sound.begin());
}

size_t silent_tail(std::span<const float> sound) {
  size_t count = 0;
  while (count < sound.size() && is_silent(sound[sound.size() - 1 - count])) ++count;
  return count;
}

}  // namespace

double pause_after(char mark) {
  switch (mark) {
    case '.':
    case '!':
    case '?':
      return 0.35;
    case ';':
    case ':':
      return 0.25;
    case ',':
      return 0.15;
    default:
      return 0.05;
  }
}

void append_speech(std::vector<float>& speech, std::span<const float> piece, double pause_s, int sample_rate) {
  if (speech.empty()) {
    speech.assign(piece.begin(), piece.end());
    return;
  }
  const auto samples = [&](double seconds) { return static_cast<size_t>(seconds * sample_rate); };
  const size_t pause = samples(pause_s), tail = silent_tail(speech), head = silent_head(piece);
  // Of the silence that is there, each side keeps at most half of the pause.
  const size_t kept_tail = std::min(tail, pause / 2), kept_head = std::min(head, pause / 2);
  speech.resize(speech.size() - (tail - kept_tail));
  const size_t first = speech.size(), fade = fade_samples(sample_rate);
  for (size_t i = 0; i < std::min(fade, first); ++i) {
    speech[first - 1 - i] *= static_cast<float>(i) / static_cast<float>(fade);
  }
  speech.resize(first + pause - kept_tail - kept_head, 0.0F);
  const std::span<const float> rest = piece.subspan(head - kept_head);
  const size_t second = speech.size();
  speech.insert(speech.end(), rest.begin(), rest.end());
  for (size_t i = 0; i < std::min(fade, rest.size()); ++i) {
    speech[second + i] *= static_cast<float>(i) / static_cast<float>(fade);
  }
}

// A join needs the silence that the next sentence begins with, and as much sound as it fades.
void SpeechJoiner::add(std::span<const float> samples) {
  if (!between_) {
    held_.insert(held_.end(), samples.begin(), samples.end());
    return;
  }
  begun_.insert(begun_.end(), samples.begin(), samples.end());
  const size_t sounding = begun_.size() - silent_head(begun_);
  if (sounding > 0 && sounding >= fade_samples(sample_rate_)) join();
}

void SpeechJoiner::end_sentence(double pause_s) {
  if (between_) join();
  if (!held_.empty()) between_ = true, pause_s_ = pause_s;
}

void SpeechJoiner::join() {
  append_speech(held_, begun_, pause_s_, sample_rate_);
  begun_.clear();
  between_ = false;
}

std::vector<float> SpeechJoiner::take() {
  const size_t kept = silent_tail(held_) + fade_samples(sample_rate_);
  if (held_.size() <= kept) return {};
  const auto end = held_.begin() + static_cast<std::ptrdiff_t>(held_.size() - kept);
  std::vector<float> settled(held_.begin(), end);
  held_.erase(held_.begin(), end);
  return settled;
}

std::vector<float> SpeechJoiner::take_rest() {
  if (between_ && !begun_.empty()) join();
  return std::exchange(held_, {});
}

}  // namespace myxtts
