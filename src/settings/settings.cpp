#include "settings/settings.h"

#include "base/error.h"

#include <charconv>
#include <cmath>

namespace myxtts {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// Makes `&config.<member>` a field address.
#define AT(member) [](Config& c) -> FieldAddress { return &c.member; }

bool is_device(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  return text.starts_with("cuda:") && text.size() > 5 && text.size() < 9 &&
         text.find_first_not_of("0123456789", 5) == std::string::npos;
}

FieldAddress mel_override(Config& config) { return MelOverride{&config.data.mel_overrides}; }

Field mel_number(std::string key, std::string meaning) {
  Field field{"data", std::move(key), mel_override, std::move(meaning)};
  field.automatic = "preset";
  return field;
}

std::vector<Field> make_fields() {
  std::vector<Field> fields = {
      {"data", "train_data", AT(data.train_data), "the corpus to train on", "--train-data"},
      {"data", "val_data", AT(data.val_data), "the corpus to validate on; without it a fixed share is held out",
       "--val-data"},
      {.section = "data",
       .key = "metadata_format",
       .address = AT(data.metadata_format),
       .meaning = "columns of metadata.csv",
       .flag = "--metadata-format",
       .choices = {"id|text|normalised", "id|speaker|text"}},
      {"data",
       "val_share",
       AT(data.val_share),
       "share of the corpus held out where no validation corpus is given",
       "",
       {},
       0,
       0.5},
      {"data", "language", AT(data.language), "language of the texts, such as en or fa: how numbers are spoken",
       "--language"},
      {.section = "data",
       .key = "text_tokens",
       .address = AT(data.text_tokens),
       .meaning = "what a token is; phonemes need espeak-ng",
       .flag = "--text-tokens",
       .choices = {"characters", "phonemes"}},
      {"data", "blank_tokens", AT(data.blank_tokens), "a blank token before, between and after the others"},
      {"data", "vocabulary", AT(data.vocabulary), "file with the only characters that texts may have; empty: any",
       "--vocabulary"},
      {"data", "trim_silence", AT(data.trim_silence), "leave out the silence at both ends of a clip", "--trim-silence"},
      {.section = "data",
       .key = "overlong",
       .address = AT(data.overlong),
       .meaning = "what to do with clips that fit no shape; they are listed in any case",
       .flag = "--overlong",
       .choices = {"error", "truncate", "drop"}},
      {"data", "batch_size", AT(data.batch_size), "clips in a batch", "--batch-size", {}, 1, 65536},
      {"data",
       "batch_frames",
       AT(data.batch_frames),
       "mel frames in a batch, so that every shape takes the same time; auto: batch_size clips",
       "",
       {},
       1,
       no_limit,
       "auto"},
      {"data", "pad_to_fixed_length", AT(data.pad_to_fixed_length), "static shapes: every batch has a declared one",
       "--pad-to-fixed-length"},
      {"data",
       "max_text_length",
       AT(data.max_text_length),
       "tokens in the longest text shape",
       "--max-text-length",
       {},
       1,
       100000},
      {"data",
       "max_mel_frames",
       AT(data.max_mel_frames),
       "frames in the longest mel shape; auto: from the corpus",
       "--max-mel-frames",
       {},
       1,
       1000000,
       "auto"},
      {"data",
       "shape_buckets",
       AT(data.shape_buckets),
       "static shapes; 1 is one fixed shape",
       "--shape-buckets",
       {},
       1,
       64},
      {"data",
       "use_native_loading",
       AT(data.use_native_loading),
       "the parallel loader; false is the slow path, one clip at a time",
       "",
       {"use_tf_native_loading"}},
      {"data", "prefetch_to_gpu", AT(data.prefetch_to_gpu), "keep ready batches in GPU memory", "--prefetch-to-gpu"},
      {"data", "enhanced_gpu_prefetch", AT(data.enhanced_gpu_prefetch), "cache clips in GPU memory where they fit"},
      {"data", "optimize_cpu_gpu_overlap", AT(data.optimize_cpu_gpu_overlap),
       "copies and features on streams of their own, beside the step"},
      {"data", "auto_tune_performance", AT(data.auto_tune_performance), "tune workers, buffers and caches by itself"},
      {"data",
       "num_workers",
       AT(data.num_workers),
       "threads that read and decode",
       "--num-workers",
       {},
       1,
       4096,
       "auto"},
      {"data",
       "prefetch_buffer_size",
       AT(data.prefetch_buffer_size),
       "batches being prepared at a time",
       "",
       {},
       1,
       65536,
       "auto"},
      {"data",
       "pipeline_buffer_size",
       AT(data.pipeline_buffer_size),
       "ready batches in the ring",
       "--buffer-size",
       {},
       1,
       65536},
      {"data",
       "data_gpu",
       AT(data.data_gpu),
       "GPU that prepares batches; with model_gpu: Multi-GPU mode",
       "--data-gpu",
       {},
       0,
       1023,
       "none"},
      {"data",
       "model_gpu",
       AT(data.model_gpu),
       "GPU that trains; with data_gpu: Multi-GPU mode",
       "--model-gpu",
       {},
       0,
       1023,
       "none"},
      {"data",
       "model_start_delay",
       AT(data.model_start_delay),
       "seconds the model GPU gives the data GPU",
       "--model-start-delay",
       {},
       0,
       3600},
      {"data", "strict_devices", AT(data.strict_devices), "a GPU that is not there ends the run instead of a warning"},
      {"data", "staged_peer_copy", AT(data.staged_peer_copy),
       "Multi-GPU mode also for GPUs that cannot reach each other, through host memory"},
      {"data", "mel_preset", AT(data.mel_preset), "log-mel convention; `mel --list` names them", "--mel-preset"},
      mel_number("sample_rate", "samples a second that clips are brought to"),
      mel_number("n_fft", "points of the Fourier transform"),
      mel_number("hop_length", "samples between frames"),
      mel_number("win_length", "samples in the window"),
      mel_number("n_mels", "mel bands"),
      mel_number("f_min", "lowest band edge in Hz"),
      mel_number("f_max", "highest band edge in Hz; 0 is half the sample rate"),
      mel_number("mel_scale", "slaney, htk or tensorflow"),
      mel_number("mel_norm", "slaney (equal area) or none (peak 1)"),
      mel_number("mel_power", "1 for magnitude, 2 for power"),
      mel_number("magnitude_epsilon", "added under the magnitude's square root"),
      mel_number("mel_padding", "centre, centre_zeros, hifigan or end"),
      mel_number("mel_log", "ln, log10 or none"),
      mel_number("log_floor", "smallest value before the logarithm"),
      mel_number("log_offset", "added before the logarithm"),
      mel_number("mel_mean", "subtracted after the logarithm"),
      mel_number("mel_std", "divided by after the logarithm"),
      mel_number("mel_range", "what happens last, over a clip: none, whisper or min_max"),
      mel_number("mel_range_low", "lowest value of min_max"),
      mel_number("mel_range_high", "highest value of min_max"),
      {"data",
       "normalize_target_rms",
       AT(data.normalize_target_rms),
       "level that clips are brought to; auto: the preset's",
       "",
       {},
       1e-6,
       1,
       "auto"},
      {.section = "model",
       .key = "size",
       .address = AT(model.size),
       .meaning = "size of the voice",
       .flag = "--model-size",
       .old_names = {"model_size"},
       .choices = {"tiny", "small", "normal", "big"}},
      {"training", "checkpoint_dir", AT(training.checkpoint_dir), "folder of checkpoints", "--checkpoint-dir"},
      {"training", "tensorboard_log_dir", AT(training.tensorboard_log_dir), "folder of TensorBoard events",
       "--tensorboard-log-dir"},
      {.section = "training",
       .key = "device",
       .address = AT(training.device),
       .meaning = "auto, cpu or cuda:N",
       .flag = "--device",
       .valid = is_device},
      {"training", "seed", AT(training.seed), "seed of everything random", "--seed", {}, 0, no_limit},
      {"training", "epochs", AT(training.epochs), "passes over the corpus", "--epochs", {}, 1, no_limit},
      {"training",
       "max_steps",
       AT(training.max_steps),
       "steps after which to stop",
       "--max-steps",
       {},
       1,
       no_limit,
       "none"},
      {"training", "learning_rate", AT(training.learning_rate), "peak learning rate", "--lr", {"lr"}, 1e-12, 10},
      {"training",
       "gradient_accumulation_steps",
       AT(training.gradient_accumulation_steps),
       "batches in an update",
       "--gradient-accumulation-steps",
       {},
       1,
       65536},
      {"training",
       "warmup_steps",
       AT(training.warmup_steps),
       "steps until the learning rate is at its peak; auto: a tenth of the run, at most 1000",
       "",
       {},
       0,
       no_limit,
       "auto"},
      {"training", "weight_decay", AT(training.weight_decay), "of matrices, by AdamW", "", {}, 0, 1},
      {"training",
       "gradient_clip",
       AT(training.gradient_clip),
       "longest gradient; longer ones are shortened to it",
       "",
       {},
       1e-6,
       1e9},
      {"training",
       "ema_decay",
       AT(training.ema_decay),
       "of the average of the weights that validates and speaks",
       "",
       {},
       0,
       0.999999},
      {"training", "log_every", AT(training.log_every), "steps between lines of metrics.jsonl", "", {}, 1, no_limit},
      {"training",
       "validate_every",
       AT(training.validate_every),
       "steps between validations; auto: after each epoch",
       "",
       {},
       1,
       no_limit,
       "auto"},
      {"training", "checkpoint_every", AT(training.checkpoint_every), "steps between checkpoints", "", {}, 1, no_limit},
      {"training",
       "keep_checkpoints",
       AT(training.keep_checkpoints),
       "checkpoints that stay, beside the best",
       "",
       {},
       1,
       100000},
      {"training",
       "sample_every",
       AT(training.sample_every),
       "steps between pictures and sounds; auto: with each validation",
       "",
       {},
       1,
       no_limit,
       "auto"},
      {"training", "sample_text", AT(training.sample_text), "what the samples say; empty: a text of the corpus"},
      {"training",
       "early_stopping",
       AT(training.early_stopping),
       "validations without progress after which to stop; none: never",
       "",
       {},
       1,
       no_limit,
       "none"},
      {"training",
       "skipped_steps_limit",
       AT(training.skipped_steps_limit),
       "updates in a row that may be skipped because the gradient is not finite",
       "",
       {},
       1,
       no_limit},
      {.section = "training",
       .key = "optimization_level",
       .address = AT(training.optimization_level),
       .meaning = "set of settings: basic (no capture, no fused kernels), enhanced, experimental",
       .flag = "--optimization-level",
       .choices = {"basic", "enhanced", "experimental"}},
      {"training", "enable_graph_mode", AT(training.enable_graph_mode),
       "capture the step once per shape and replay it"},
      {"training",
       "enable_fused_kernels",
       AT(training.enable_fused_kernels),
       "fused kernels in the step",
       "",
       {"enable_xla_compilation"}},
      {"training", "enable_eager_debug", AT(training.enable_eager_debug), "no capture; names and shapes in errors",
       "--enable-eager-debug"},
      {"training", "strict_shapes", AT(training.strict_shapes),
       "a batch of a shape that was not declared ends the run instead of being captured"},
  };
  return fields;
}
#undef AT

bool parse_bool(std::string text, bool& value) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text == "true" || text == "yes" || text == "on") return value = true, true;
  if (text == "false" || text == "no" || text == "off") return value = false, true;
  return false;
}

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool in_limits(const Field& field, double value) { return value >= field.least && value <= field.most; }

bool parse_range(const Field& field, std::string_view text, IntRange& value) {
  const size_t dash = text.find('-', 1);
  IntRange range;
  if (!parse_number(text.substr(0, dash), range.low)) return false;
  range.high = range.low;
  if (dash != std::string_view::npos && !parse_number(text.substr(dash + 1), range.high)) return false;
  if (!in_limits(field, range.low) || !in_limits(field, range.high) || range.low > range.high) return false;
  value = range;
  return true;
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Writes the value and returns true, or returns false and leaves it.
bool store(const Field& field, Config& config, const std::string& text) {
  const bool automatic = !field.automatic.empty() && text == field.automatic;
  const auto unset = static_cast<int64_t>(field.least - 1);
  return std::visit(Overloaded{[&](bool* value) { return parse_bool(text, *value); },
                               [&](int64_t* value) {
                                 if (automatic) return *value = unset, true;
                                 int64_t number = 0;
                                 if (!parse_number(text, number) || !in_limits(field, static_cast<double>(number)))
                                   return false;
                                 return *value = number, true;
                               },
                               [&](double* value) {
                                 if (automatic) return *value = 0.0, true;
                                 double number = 0;
                                 if (!parse_number(text, number) || !std::isfinite(number) || !in_limits(field, number))
                                   return false;
                                 return *value = number, true;
                               },
                               [&](std::string* value) {
                                 if (field.valid != nullptr && !field.valid(text)) return false;
                                 const bool known =
                                     field.choices.empty() ||
                                     std::find(field.choices.begin(), field.choices.end(), text) != field.choices.end();
                                 if (known) *value = text;
                                 return known;
                               },
                               [&](IntRange* value) {
                                 if (automatic) return *value = IntRange{}, true;
                                 return parse_range(field, text, *value);
                               },
                               [&](MelOverride mel) {
                                 if (text.empty()) return false;
                                 if (automatic) {
                                   mel.overrides->erase(field.key);
                                 } else {
                                   (*mel.overrides)[field.key] = text;
                                 }
                                 return true;
                               }},
                    field.address(config));
}

}  // namespace

const std::vector<Field>& config_fields() {
  static const std::vector<Field> fields = make_fields();
  return fields;
}

const Field* find_field(std::string_view name) {
  for (const Field& field : config_fields()) {
    if (name == field.key || name == field.name()) return &field;
    for (const std::string& old : field.old_names) {
      if (name == old || name == field.section + "." + old) return &field;
    }
  }
  return nullptr;
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const Field& field : config_fields()) {
    names.push_back(field.key);
    names.insert(names.end(), field.old_names.begin(), field.old_names.end());
  }
  return names;
}

std::string value_text(const Field& field, const Config& config) {
  Config copy = config;
  const auto unset = static_cast<int64_t>(field.least - 1);
  return std::visit(
      Overloaded{[](const bool* value) { return std::string(*value ? "true" : "false"); },
                 [&](const int64_t* value) {
                   return !field.automatic.empty() && *value == unset ? field.automatic : fmt::format("{}", *value);
                 },
                 [&](const double* value) {
                   return !field.automatic.empty() && *value == 0.0 ? field.automatic : fmt::format("{}", *value);
                 },
                 [](const std::string* value) { return value->empty() ? std::string("none") : *value; },
                 [&](const IntRange* value) {
                   if (value->automatic()) return field.automatic;
                   return value->fixed() ? fmt::format("{}", value->low)
                                         : fmt::format("{}-{}", value->low, value->high);
                 },
                 [&](const MelOverride mel) {
                   const auto found = mel.overrides->find(field.key);
                   return found == mel.overrides->end() ? field.automatic : found->second;
                 }},
      field.address(copy));
}

std::string allowed_text(const Field& field) {
  const auto limits = [&](const char* noun) {
    const std::string kind = field.most == no_limit ? fmt::format("{} of at least {}", noun, field.least)
                                                    : fmt::format("{} from {} to {}", noun, field.least, field.most);
    return field.automatic.empty() ? kind : fmt::format("{}, or {}", kind, field.automatic);
  };
  Config any;
  return std::visit(Overloaded{[](const bool*) { return std::string("true or false"); },
                               [&](const int64_t*) { return limits("a whole number"); },
                               [&](const double*) { return limits("a number"); },
                               [&](const std::string*) {
                                 if (field.valid != nullptr) return field.meaning;
                                 return field.choices.empty()
                                            ? std::string("a text")
                                            : fmt::format("one of {}", fmt::join(field.choices, ", "));
                               },
                               [&](const IntRange*) { return limits("a whole number or a range such as 8-16,"); },
                               [&](const MelOverride) { return std::string("a value of its kind, or preset"); }},
                    field.address(any));
}

void set_field(ResolvedConfig& config, const Field& field, const std::string& text, const Source& source) {
  if (!store(field, config.values, text)) {
    reject_setting("config", field.name(), "is '{}' ({})", text, source.to_string(),
                   way_out("it must be {}", allowed_text(field)));
  }
  config.sources[field.name()] = source;
}

void apply_optimization_level(ResolvedConfig& config) {
  if (config.values.training.optimization_level != "basic") return;
  for (const char* key : {"training.enable_graph_mode", "training.enable_fused_kernels"}) {
    if (!config.sources.contains(key)) {
      set_field(config, *find_field(key), "false", {Source::Kind::preset, "optimization level basic"});
    }
  }
}

}  // namespace myxtts
