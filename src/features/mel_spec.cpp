#include "features/mel_spec.h"

#include "base/error.h"
#include "base/nearest.h"

#include <charconv>
#include <cmath>
#include <type_traits>
#include <variant>

namespace myxtts {
namespace {

std::vector<MelSpec> make_presets() {
  const MelSpec hifigan{.name = "hifigan", .magnitude_epsilon = 1e-9, .padding = MelPadding::hifigan};
  MelSpec matcha = hifigan;
  matcha.name = "matcha", matcha.mean = -5.536622, matcha.std = 2.116101;  // statistics of LJSpeech
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

const Names<bool> switches = {{"false", false}, {"true", true}};

const Names<MelScale>& names_of(MelScale) { return scales; }
const Names<MelNorm>& names_of(MelNorm) { return norms; }
const Names<MelLog>& names_of(MelLog) { return logs; }
const Names<MelRange>& names_of(MelRange) { return ranges; }
const Names<MelPadding>& names_of(MelPadding) { return paddings; }
const Names<bool>& names_of(bool) { return switches; }

// One field of a spec. `settable`: a preset of the user's own, or `data:` itself, may change it.
struct MelField {
  const char* key;
  std::variant<int MelSpec::*, double MelSpec::*, bool MelSpec::*, MelScale MelSpec::*, MelNorm MelSpec::*,
               MelLog MelSpec::*, MelRange MelSpec::*, MelPadding MelSpec::*>
      member;
  bool settable = true;

  bool set(MelSpec& spec, const std::string& text) const {
    return std::visit(
        [&](auto at) {
          auto& value = spec.*at;
          using Value = std::remove_reference_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, double>) {
            return number(text, value);
          } else {
            return choose(names_of(value), text, value);
          }
        },
        member);
  }

  std::string text(const MelSpec& spec) const {
    return std::visit(
        [&](auto at) {
          const auto value = spec.*at;
          if constexpr (std::is_same_v<decltype(value), const int> || std::is_same_v<decltype(value), const double>) {
            return fmt::format("{}", value);
          } else {
            return std::string(name_of(names_of(value), value));
          }
        },
        member);
  }

  std::string allowed() const {
    if (std::holds_alternative<int MelSpec::*>(member)) return "a whole number";
    if (std::holds_alternative<double MelSpec::*>(member)) return "a number";
    return std::visit(
        [](auto at) {
          std::vector<const char*> words;
          if constexpr (!std::is_same_v<decltype(at), int MelSpec::*> &&
                        !std::is_same_v<decltype(at), double MelSpec::*>) {
            for (const auto& [name, value] : names_of(MelSpec{}.*at)) words.push_back(name);
          }
          return fmt::format("one of {}", fmt::join(words, ", "));
        },
        member);
  }
};

// Every field but the name.
const MelField fields[] = {
    {"sample_rate", &MelSpec::sample_rate},
    {"n_fft", &MelSpec::n_fft},
    {"hop_length", &MelSpec::hop_length},
    {"win_length", &MelSpec::win_length},
    {"n_mels", &MelSpec::n_mels},
    {"f_min", &MelSpec::f_min},
    {"f_max", &MelSpec::f_max},
    {"mel_scale", &MelSpec::mel_scale},
    {"mel_norm", &MelSpec::mel_norm},
    {"mel_power", &MelSpec::mel_power},
    {"magnitude_epsilon", &MelSpec::magnitude_epsilon},
    {"mel_padding", &MelSpec::padding},
    {"drop_last_frame", &MelSpec::drop_last_frame, false},
    {"mel_log", &MelSpec::log},
    {"log_floor", &MelSpec::log_floor},
    {"log_offset", &MelSpec::log_offset},
    {"mel_mean", &MelSpec::mean},
    {"mel_std", &MelSpec::std},
    {"mel_range", &MelSpec::range},
    {"mel_range_low", &MelSpec::range_low},
    {"mel_range_high", &MelSpec::range_high},
    {"normalize_target_rms", &MelSpec::target_rms, false},
};

void apply(MelSpec& spec, const std::map<std::string, std::string>& settings, const std::string& where) {
  for (const auto& [key, text] : settings) {
    if (key == "base") continue;
    std::vector<std::string> known;
    const MelField* found = nullptr;
    for (const MelField& field : fields) {
      if (!field.settable) continue;
      known.emplace_back(field.key);
      if (key == field.key) found = &field;
    }
    if (found == nullptr) {
      reject_setting("mel", where + "." + key, "is not a mel setting",
                     way_out("did you mean {}?", nearest(key, known)));
    }
    if (!found->set(spec, text)) {
      reject_setting("mel", where + "." + key, "is '{}'", text, way_out("it must be {}", found->allowed()));
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
  check(f_min >= 0 && f_min < effective_f_max() && effective_f_max() <= sample_rate / 2.0,
        "0 <= f_min < f_max <= sample_rate / 2 must hold");
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
                  n_fft, hop_length, win_length, n_mels, f_min, effective_f_max(), name_of(scales, mel_scale),
                  name_of(norms, mel_norm), mel_power, name_of(paddings, padding), name_of(logs, log));
  if (log != MelLog::none && log_floor > 0) text += fmt::format(" of at least {:g}", log_floor);
  if (log != MelLog::none && log_offset > 0) text += fmt::format(" of x+{:g}", log_offset);
  if (mean != 0 || std != 1) text += fmt::format(", mean {:g} std {:g}", mean, std);
  if (range != MelRange::none) text += fmt::format(", range {}", name_of(ranges, range));
  if (target_rms > 0) text += fmt::format(", level {:g}", target_rms);
  return text;
}

std::vector<std::pair<std::string, std::string>> MelSpec::values() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const MelField& field : fields) all.emplace_back(field.key, field.text(*this));
  return all;
}

std::string MelSpec::description() const {
  std::string text;
  for (const auto& [key, value] : values()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
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
  reject_input("mel", "there is no mel preset '{}'", name,
               way_out("did you mean {}? (`mel --list` lists them)", nearest(name, known)));
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
