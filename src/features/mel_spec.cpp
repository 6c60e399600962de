#include "features/mel_spec.h"

#include "base/error.h"
#include "base/nearest.h"

#include <charconv>
#include <cmath>
#include <functional>

namespace myxtts {
namespace {

std::vector<MelSpec> make_presets() {
  const MelSpec hifigan{.name = "hifigan", .magnitude_epsilon = 1e-9, .padding = MelPadding::hifigan};
  MelSpec matcha = hifigan;
  matcha.name = "matcha", matcha.mean = -5.536622, matcha.std = 2.116101;  // those of LJSpeech
  MelSpec bigvgan = hifigan;
  bigvgan.name = "bigvgan_24k", bigvgan.sample_rate = 24000, bigvgan.n_mels = 100, bigvgan.f_max = 12000;
  MelSpec cosyvoice = hifigan;
  cosyvoice.name = "cosyvoice", cosyvoice.sample_rate = 24000;
  cosyvoice.n_fft = cosyvoice.win_length = 1920, cosyvoice.hop_length = 480;
  const MelSpec tacotron2{.name = "tacotron2"};
  const MelSpec vocos{.name = "vocos",
                      .sample_rate = 24000,
                      .n_mels = 100,
                      .f_max = 12000,
                      .mel_scale = MelScale::htk,
                      .mel_norm = MelNorm::none,
                      .log_floor = 1e-7};
  const MelSpec xtts{.name = "xtts", .mel_scale = MelScale::htk, .mel_power = 2};
  const MelSpec espnet{.name = "espnet", .f_min = 80, .f_max = 7600, .log = MelLog::log10, .log_floor = 1e-10};
  const MelSpec whisper{.name = "whisper",
                        .sample_rate = 16000,
                        .n_fft = 400,
                        .hop_length = 160,
                        .win_length = 400,
                        .mel_power = 2,
                        .drop_last_frame = true,
                        .log = MelLog::log10,
                        .log_floor = 1e-10,
                        .range = MelRange::whisper};
  const MelSpec librosa{.name = "librosa",
                        .n_fft = 2048,
                        .hop_length = 512,
                        .win_length = 2048,
                        .n_mels = 128,
                        .f_max = 0,
                        .mel_power = 2,
                        .padding = MelPadding::centre_zeros,
                        .log = MelLog::none};
  const MelSpec torchaudio{.name = "torchaudio",
                           .sample_rate = 16000,
                           .n_fft = 400,
                           .hop_length = 200,
                           .win_length = 400,
                           .n_mels = 128,
                           .f_max = 0,
                           .mel_scale = MelScale::htk,
                           .mel_norm = MelNorm::none,
                           .mel_power = 2,
                           .log = MelLog::none};
  const MelSpec tf_signal{.name = "tf_signal",
                          .f_max = 0,
                          .mel_scale = MelScale::tensorflow,
                          .mel_norm = MelNorm::none,
                          .padding = MelPadding::end,
                          .log_floor = 0,
                          .log_offset = 1e-6,
                          .range = MelRange::min_max,
                          .target_rms = 0.1};
  return {hifigan, matcha, tacotron2, bigvgan, vocos, cosyvoice, xtts, espnet, whisper, librosa, torchaudio, tf_signal};
}

template <typename Choice>
using Names = std::vector<std::pair<const char*, Choice>>;

const Names<MelScale> scales = {
    {"slaney", MelScale::slaney}, {"htk", MelScale::htk}, {"tensorflow", MelScale::tensorflow}};
const Names<MelNorm> norms = {{"slaney", MelNorm::slaney}, {"none", MelNorm::none}};
const Names<MelLog> logs = {{"ln", MelLog::ln}, {"log10", MelLog::log10}, {"none", MelLog::none}};
const Names<MelRange> ranges = {
    {"none", MelRange::none}, {"whisper", MelRange::whisper}, {"min_max", MelRange::min_max}};
const Names<MelPadding> paddings = {{"centre", MelPadding::centre},
                                    {"centre_zeros", MelPadding::centre_zeros},
                                    {"hifigan", MelPadding::hifigan},
                                    {"end", MelPadding::end}};

template <typename Choice>
const char* name_of(const Names<Choice>& names, Choice choice) {
  for (const auto& [name, value] : names) {
    if (value == choice) return name;
  }
  return "?";
}

template <typename Choice>
bool choose(const Names<Choice>& names, const std::string& text, Choice& into) {
  for (const auto& [name, value] : names) {
    if (text == name) return into = value, true;
  }
  return false;
}

template <typename Number>
bool number(const std::string& text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(static_cast<double>(into));
}

using Setter = std::function<bool(MelSpec&, const std::string&)>;

// The settings that a preset of the user's own, or `data:` itself, may change.
const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"sample_rate", [](MelSpec& s, const std::string& t) { return number(t, s.sample_rate); }},
      {"n_fft", [](MelSpec& s, const std::string& t) { return number(t, s.n_fft); }},
      {"hop_length", [](MelSpec& s, const std::string& t) { return number(t, s.hop_length); }},
      {"win_length", [](MelSpec& s, const std::string& t) { return number(t, s.win_length); }},
      {"n_mels", [](MelSpec& s, const std::string& t) { return number(t, s.n_mels); }},
      {"f_min", [](MelSpec& s, const std::string& t) { return number(t, s.f_min); }},
      {"f_max", [](MelSpec& s, const std::string& t) { return number(t, s.f_max); }},
      {"mel_scale", [](MelSpec& s, const std::string& t) { return choose(scales, t, s.mel_scale); }},
      {"mel_norm", [](MelSpec& s, const std::string& t) { return choose(norms, t, s.mel_norm); }},
      {"mel_power", [](MelSpec& s, const std::string& t) { return number(t, s.mel_power); }},
      {"magnitude_epsilon", [](MelSpec& s, const std::string& t) { return number(t, s.magnitude_epsilon); }},
      {"mel_padding", [](MelSpec& s, const std::string& t) { return choose(paddings, t, s.padding); }},
      {"mel_log", [](MelSpec& s, const std::string& t) { return choose(logs, t, s.log); }},
      {"log_floor", [](MelSpec& s, const std::string& t) { return number(t, s.log_floor); }},
      {"log_offset", [](MelSpec& s, const std::string& t) { return number(t, s.log_offset); }},
      {"mel_mean", [](MelSpec& s, const std::string& t) { return number(t, s.mean); }},
      {"mel_std", [](MelSpec& s, const std::string& t) { return number(t, s.std); }},
      {"mel_range", [](MelSpec& s, const std::string& t) { return choose(ranges, t, s.range); }},
      {"mel_range_low", [](MelSpec& s, const std::string& t) { return number(t, s.range_low); }},
      {"mel_range_high", [](MelSpec& s, const std::string& t) { return number(t, s.range_high); }},
  };
  return table;
}

template <typename Choice>
std::string listed(const Names<Choice>& names) {
  std::vector<const char*> words;
  for (const auto& [name, value] : names) words.push_back(name);
  return fmt::format("one of {}", fmt::join(words, ", "));
}

std::string allowed(const std::string& key) {
  if (key == "mel_scale") return listed(scales);
  if (key == "mel_norm") return listed(norms);
  if (key == "mel_padding") return listed(paddings);
  if (key == "mel_log") return listed(logs);
  if (key == "mel_range") return listed(ranges);
  const bool whole =
      key == "sample_rate" || key == "mel_power" || key == "n_fft" || key == "n_mels" || key.ends_with("_length");
  return whole ? "a whole number" : "a number";
}

void apply(MelSpec& spec, const std::map<std::string, std::string>& settings, const std::string& where) {
  for (const auto& [key, text] : settings) {
    if (key == "base") continue;
    const auto setter = setters().find(key);
    if (setter == setters().end()) {
      std::vector<std::string> known;
      for (const auto& [name, ignored] : setters()) known.push_back(name);
      reject_setting("mel", where + "." + key, "is not a mel setting",
                     way_out("did you mean {}?", nearest(key, known)));
    }
    if (!setter->second(spec, text)) {
      reject_setting("mel", where + "." + key, "is '{}'", text, way_out("it must be {}", allowed(key)));
    }
  }
}

}  // namespace

int64_t MelSpec::frames(int64_t samples) const {
  switch (padding) {
    case MelPadding::centre:
    case MelPadding::centre_zeros:
      return samples / hop_length + (drop_last_frame ? 0 : 1);
    case MelPadding::hifigan:
      return samples / hop_length;
    case MelPadding::end:
      return (samples + hop_length - 1) / hop_length;
  }
  return 0;
}

int64_t MelSpec::first_sample() const {
  if (padding == MelPadding::end) return 0;
  return padding == MelPadding::hifigan ? -(n_fft - hop_length) / 2 : -n_fft / 2;
}

void MelSpec::validate() const {
  const auto check = [&](bool good, const char* what) {
    if (!good) reject_input("mel", "preset {}: {}", name, what);
  };
  int rest = n_fft;
  for (const int factor : {2, 3, 5}) {
    while (rest > 1 && rest % factor == 0) rest /= factor;
  }
  check(n_fft >= 16 && n_fft <= 8192 && n_fft % 8 == 0 && rest == 1,
        "n_fft must be from 16 to 8192, a multiple of 8, with no prime factors but 2, 3 and 5");
  check(hop_length >= 1 && hop_length <= n_fft, "hop_length must be from 1 to n_fft");
  check(win_length >= 1 && win_length <= n_fft, "win_length must be from 1 to n_fft");
  check(sample_rate >= 1000 && sample_rate <= 768000, "sample_rate must be from 1000 to 768000");
  check(n_mels >= 1 && n_mels <= 512, "n_mels must be from 1 to 512");
  check(f_min >= 0 && f_min < highest_hz() && highest_hz() <= sample_rate / 2.0,
        "f_min and f_max must lie in order between 0 and half the sample rate");
  check(mel_power == 1 || mel_power == 2, "mel_power must be 1 or 2");
  check(magnitude_epsilon >= 0, "magnitude_epsilon must not be negative");
  check(log == MelLog::none || log_floor + log_offset > 0, "log_floor or log_offset must be above 0");
  check(log_floor >= 0 && log_offset >= 0, "log_floor and log_offset must not be negative");
  check(std > 0, "mel_std must be above 0");
  check(range_low < range_high, "mel_range_low must be below mel_range_high");
}

std::string MelSpec::to_string() const {
  std::string text =
      fmt::format("{} Hz, {}/{}/{}, {} mels {:g}-{:g} Hz, {} scale, {} norm, power {}, padding {}, log {}", sample_rate,
                  n_fft, hop_length, win_length, n_mels, f_min, highest_hz(), name_of(scales, mel_scale),
                  name_of(norms, mel_norm), mel_power, name_of(paddings, padding), name_of(logs, log));
  if (log != MelLog::none && log_floor > 0) text += fmt::format(" of at least {:g}", log_floor);
  if (log != MelLog::none && log_offset > 0) text += fmt::format(" of x+{:g}", log_offset);
  if (mean != 0 || std != 1) text += fmt::format(", mean {:g} std {:g}", mean, std);
  if (range != MelRange::none) text += fmt::format(", range {}", name_of(ranges, range));
  if (target_rms > 0) text += fmt::format(", level {:g}", target_rms);
  return text;
}

const std::vector<MelSpec>& mel_presets() {
  static const std::vector<MelSpec> presets = make_presets();
  return presets;
}

const MelSpec& mel_preset(const std::string& name) {
  std::vector<std::string> known;
  for (const MelSpec& preset : mel_presets()) {
    if (preset.name == name) return preset;
    known.push_back(preset.name);
  }
  reject_input("mel", "there is no preset '{}'", name,
               way_out("did you mean {}? (`mel --list` names them)", nearest(name, known)));
}

MelSpec resolve_mel_spec(const Config& config) {
  const std::string& name = config.data.mel_preset;
  MelSpec spec;
  const auto own = config.mel_presets.find(name);
  if (own == config.mel_presets.end()) {
    spec = mel_preset(name);
  } else {
    const auto base = own->second.find("base");
    spec = mel_preset(base == own->second.end() ? "hifigan" : base->second);
    spec.name = name;
    apply(spec, own->second, "mel_presets." + name);
  }
  apply(spec, config.data.mel_overrides, "data");
  if (config.data.normalize_target_rms > 0) spec.target_rms = config.data.normalize_target_rms;
  spec.validate();
  return spec;
}

}  // namespace myxtts
