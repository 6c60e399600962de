// Every setting, as plain structs with their defaults. `config_fields.h` names them for files and flags,
// `config_file.h` fills them from YAML. No setting is read from anywhere else.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace myxtts {

// A number, or a range within which automatic tuning picks. {0, 0} leaves the choice to the tuning altogether.
struct IntRange {
  int64_t low = 0;
  int64_t high = 0;

  bool automatic() const { return high == 0; }
  bool fixed() const { return low == high && !automatic(); }
  // The allowed value nearest to `wish`.
  int64_t pick(int64_t wish) const { return automatic() ? wish : wish < low ? low : wish > high ? high : wish; }
  bool operator==(const IntRange&) const = default;
};

struct DataConfig {
  std::string train_data;
  std::string val_data;
  std::string metadata_format = "id|text|normalised";
  std::string language = "en";
  std::string text_tokens = "characters";
  bool blank_tokens = false;
  std::string vocabulary;  // empty: from the corpus
  bool trim_silence = false;
  double val_share = 0.02;
  std::string overlong = "drop";
  IntRange batch_size{16, 16};
  int64_t batch_frames = 0;  // 0: batch_size clips in every shape

  bool pad_to_fixed_length = true;
  int64_t max_text_length = 200;
  int64_t max_mel_frames = 0;  // 0: from the corpus and the model
  int64_t shape_buckets = 12;

  bool use_native_loading = true;
  bool prefetch_to_gpu = true;
  bool enhanced_gpu_prefetch = true;
  bool optimize_cpu_gpu_overlap = true;
  bool auto_tune_performance = true;
  IntRange num_workers;
  IntRange prefetch_buffer_size;
  int64_t pipeline_buffer_size = 50;
  int64_t data_gpu = -1;  // -1: not given
  int64_t model_gpu = -1;
  double model_start_delay = 2.0;
  bool strict_devices = false;
  bool staged_peer_copy = false;

  std::string mel_preset = "hifigan";
  std::map<std::string, std::string> mel_overrides;  // single numbers of the preset set by themselves
  double normalize_target_rms = 0.0;                 // 0: the clip's own level
};

struct ModelConfig {
  std::string size = "tiny";
};

struct TrainingConfig {
  std::string checkpoint_dir = "checkpoints";
  std::string tensorboard_log_dir;
  std::string device = "auto";
  int64_t seed = 1;
  int64_t epochs = 100;
  int64_t max_steps = 0;  // 0: no limit but the epochs
  double learning_rate = 1e-4;
  int64_t gradient_accumulation_steps = 1;
  int64_t warmup_steps = -1;  // -1: a tenth of the run, at most 1000
  double weight_decay = 0.01;
  double gradient_clip = 5.0;
  double ema_decay = 0.999;
  int64_t log_every = 10;
  int64_t validate_every = 0;  // 0: after each epoch
  int64_t checkpoint_every = 500;
  int64_t keep_checkpoints = 3;
  int64_t sample_every = 0;  // 0: with each validation
  std::string sample_text;   // empty: the first text held out
  int64_t early_stopping = 0;
  int64_t skipped_steps_limit = 25;
  std::string optimization_level = "enhanced";
  bool enable_graph_mode = true;
  bool enable_fused_kernels = true;
  bool enable_eager_debug = false;
  bool strict_shapes = false;
};

struct Config {
  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  // Mel presets of the user's own: name -> setting -> value, `base` among the settings.
  std::map<std::string, std::map<std::string, std::string>> mel_presets;
};

// Where a value came from; a later kind beats an earlier one.
struct Source {
  enum class Kind { by_default, preset, file, flag, auto_tuned };
  Kind kind = Kind::by_default;
  std::string detail;  // preset's name, file:line, flag, reason

  std::string to_string() const;  // "file my.yaml:3"
};

// A configuration that remembers the source of each value, by "section.key". A key without one has its default.
struct ResolvedConfig {
  Config values;
  std::map<std::string, Source> sources;
};

}  // namespace myxtts
