// A log-mel convention: all parameters of a mel spectrogram. The named presets are those of published vocoders and
// voices. A vocoder needs mels of the convention that it was trained on.
#pragma once

#include "settings/config.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace myxtts {

// Frames, at most, of a reference: the stretch of a clip that shows how its speaker sounds. About 3 s.
constexpr int64_t reference_frames = 256;

// Samples, at the mel's rate, of the part of a clip that a vocoder is trained on: about two thirds of a second.
constexpr int64_t crop_samples = 16'384;

enum class MelScale { slaney, htk, tensorflow };  // tensorflow: HTK scale with triangles linear in mel instead of Hz
enum class MelNorm { none, slaney };              // slaney: equal area; none: peak 1
enum class MelLog { none, ln, log10 };
enum class MelRange { none, whisper, min_max };  // final normalisation over a whole clip

enum class MelPadding {
  centre,        // centred frames, reflect padding of n_fft/2
  centre_zeros,  // centred frames, zero padding
  hifigan,       // reflect padding of (n_fft - hop)/2
  end,           // left-aligned frames, zero padding at the end
};

struct MelSpec {
  std::string name;
  int sample_rate = 22050;
  int n_fft = 1024;
  int hop_length = 256;
  int win_length = 1024;
  int n_mels = 80;
  double f_min = 0;
  double f_max = 8000;  // 0: Nyquist frequency
  MelScale mel_scale = MelScale::slaney;
  MelNorm mel_norm = MelNorm::slaney;
  int mel_power = 1;
  double magnitude_epsilon = 0;  // added to the power before the square root
  MelPadding padding = MelPadding::centre;
  bool drop_last_frame = false;
  MelLog log = MelLog::ln;
  double log_floor = 1e-5;  // log(max(x, floor) + offset)
  double log_offset = 0;
  double mean = 0;
  double std = 1;
  MelRange range = MelRange::none;
  double range_low = 0;  // for min_max
  double range_high = 1;
  double target_rms = 0;  // 0: no level normalisation

  int bins() const { return n_fft / 2 + 1; }
  double effective_f_max() const { return f_max > 0 ? f_max : sample_rate / 2.0; }

  // Number of frames of a clip of `samples` samples at `sample_rate`.
  int64_t frames(int64_t samples) const;

  // First sample of the window of frame 0, relative to the start of the clip.
  int64_t first_sample() const;

  // Throws Error that names the invalid setting.
  void validate() const;

  // For people: "22050 Hz, 1024/256/1024, 80 mels 0-8000 Hz, ...". Leaves out what most conventions share.
  std::string to_string() const;

  // Every field but the name as key and value, in a fixed order: two specs with the same values make the same mel.
  std::vector<std::pair<std::string, std::string>> values() const;

  // Those values as one line, for hashes: "sample_rate=22050 n_fft=1024 ...".
  std::string description() const;

  bool operator==(const MelSpec&) const = default;
};

const std::vector<MelSpec>& mel_presets();

// The preset named by the config, which may be user-defined and inherit from `base`, with overrides of `data:` applied.
// Validated.
MelSpec resolve_mel_spec(const Config& config);

// A built-in preset by name; throws Error that suggests the nearest name.
const MelSpec& mel_preset(const std::string& name);

}  // namespace myxtts
