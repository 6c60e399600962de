#include "session/torch/train_session.h"

#include "base/counted.h"
#include "base/error.h"
#include "base/version.h"
#include "session/open.h"
#include "session/torch/batch_size.h"
#include "settings/settings.h"
#include "synth/voice_file.h"
#include "train/describe_voice.h"
#include "train/fit_settings.h"
#include "train/rank_check.h"
#include "train/ranks.h"

#include <optional>
#include <set>

namespace myxtts {
namespace {

void report_corpus(const std::string& where, const CorpusIndex& index, const SessionListener& listener) {
  const size_t rejected = index.summary().rejected.size();
  if (rejected > 0) {
    listener.alert(fmt::format("{} of {} not used; `myxtts prepare {}` lists them with their reasons",
                               counted(rejected, "clip"), rejected + index.size(), where));
  }
}

// Validated on with the training corpus's vocabulary.
std::optional<Corpus> open_validation_corpus(const Config& config, const Corpus& training,
                                             const SessionListener& listener) {
  if (config.data.val_data.empty()) return std::nullopt;
  const std::set<char32_t> symbols = training.vocabulary.symbols();
  PrepareOptions options;
  options.symbols = &symbols;
  Config other = config;
  other.data.vocabulary.clear();
  return open_corpus_at(config.data.val_data, other, options, listener);
}

// The voice that a run continues: its own checkpoint, or the one to begin with.
struct Origin {
  std::filesystem::path file;
  VoiceDescription voice;
};

// A voice whose mels a vocoder is trained on.
std::optional<Origin> find_teacher(const Config& config) {
  const std::string& teacher = config.training.teacher;
  if (teacher.empty()) return std::nullopt;
  if (config.training.target != "vocoder") {
    reject_input("train", "--teacher is for vocoders", way_out("add --target vocoder, or leave it out"));
  }
  if (!config.data.val_data.empty()) {
    reject_input("train", "--teacher speaks the clips of --train-data alone", way_out("leave --val-data out"));
  }
  if (!std::filesystem::exists(teacher)) {
    reject_input("train", "--teacher: there is no {}", teacher,
                 way_out("name a voice's checkpoint, or a folder of them"));
  }
  const std::filesystem::path file = find_voice(teacher);
  return Origin{file, read_voice_description(file)};
}

std::optional<Origin> find_own_origin(const Config& config, bool reset, const std::string& from) {
  const std::filesystem::path folder = config.training.checkpoint_dir;
  if (!reset && std::filesystem::is_directory(folder)) {
    if (const auto newest = newest_checkpoint(folder, [](const std::string&) {})) {
      return Origin{*newest, read_description(*newest)};
    }
  }
  if (from.empty()) return std::nullopt;
  const std::filesystem::path file = find_voice(from);
  if (!std::filesystem::exists(file)) {
    reject_input("train", "--from: there is no {}", from, way_out("name a checkpoint, or a folder of them"));
  }
  if (config.training.target != "vocoder") return Origin{file, read_voice_description(file)};
  Origin origin{file, read_description(file)};
  if (origin.voice.config.training.target != "vocoder") {
    reject_input("train", "--from: {} is a voice, no vocoder", file.string());
  }
  return origin;
}

// `ranks` may be null. Rank 0 alone reads checkpoints.
std::optional<Origin> find_origin(const Config& config, bool reset, const std::string& from, Ranks* ranks) {
  if (ranks == nullptr) return find_own_origin(config, reset, from);
  std::optional<Origin> own;
  if (ranks->writes()) own = find_own_origin(config, reset, from);
  std::optional<FoundCheckpoint> found;
  if (own) found.emplace(own->file, own->voice.to_metadata());
  found = broadcast(*ranks, found);
  if (!found) return std::nullopt;
  return Origin{found->first, VoiceDescription::from_metadata(found->second, found->first)};
}

// What a voice's weights fit to: its size, tokens and log-mel; of a teacher's, all but the size.
void adopt_settings(Config& config, const VoiceDescription& origin, bool teaches, const SessionListener& listener) {
  ResolvedConfig resolved{config, {}};
  for (const Setting& setting : all_settings()) {
    const bool kept = (setting.fixed_on_resume && setting.key != "language" && setting.key != "adversarial") ||
                      setting.group == "mel";
    if (!kept || (teaches && (setting.key == "size" || setting.key == "target"))) continue;
    const std::string before = value_text(setting, config), now = value_text(setting, origin.config);
    if (before == now) continue;
    set_value(resolved, setting, now, {Source::Kind::auto_tuned, teaches ? "the teacher" : "the voice to begin with"});
    listener.tell(
        fmt::format("{} {}: as in {}", setting.name(), now, teaches ? "the teacher" : "the voice to begin with"));
  }
  config = resolved.values;
}

// What ranks other than 0 report: what goes wrong with them.
SessionListener quiet(const SessionListener& listener, int rank) {
  if (rank == 0) return listener;
  return {
      {}, [listener, rank](const std::string& text) { listener.alert(fmt::format("rank {}: {}", rank, text)); }, {}};
}
TrainListener quiet(const TrainListener& listener, int rank) {
  if (rank == 0) return listener;
  TrainListener warns;
  warns.warn = [listener, rank](const std::string& text) {
    if (listener.warn) listener.warn(fmt::format("rank {}: {}", rank, text));
  };
  return warns;
}

Mode choose_devices_of(const RankPlace& place, const Config& config, const SessionListener& listener) {
  int first = 0;
  Mode mode = choose_mode(config, own_devices(real_devices(), place.local, place.on_machine, first));
  for (int* const device : {&mode.data_device, &mode.model_device}) *device += *device >= 0 ? first : 0;
  mode.processes = place.on_machine, mode.on_cores = place.on_cores;
  for (const std::string& warning : mode.warnings) listener.alert(warning);
  return mode;
}

// A corpus is indexed by whoever opens it first: rank 0, then one rank of each machine, then the others.
void in_turn(Ranks* ranks, const std::function<void()>& open) {
  if (ranks == nullptr) return open();
  const RankPlace& place = ranks->place();
  const int own_turn = place.rank == 0 ? 0 : place.local == 0 ? 1 : 2;
  for (int turn = 0; turn <= 2; ++turn) {
    if (turn == own_turn) open();
    ranks->wait_for_all();
  }
}

struct TrainRequest {
  Config config;
  bool reset;
  const std::string& from;
  Ranks* ranks;  // null: this process alone
};

TrainSummary train_as_asked(TrainRequest request, const SessionListener& listener, const TrainListener& trained,
                            const std::atomic<bool>& stop, const std::function<void()>& begin) {
  Config& config = request.config;
  Ranks* const ranks = request.ranks;
  const std::string& from = request.from;
  const bool vocoder = config.training.target == "vocoder";
  const Mode mode =
      ranks != nullptr ? choose_devices_of(ranks->place(), config, listener) : choose_devices(config, listener);
  if (ranks != nullptr) {
    RankFacts facts = facts_of_device(mode.model_device);
    facts.emplace_back("--reset-training", request.reset ? "given" : "not given");
    facts.emplace_back("--from", from.empty() ? "not given" : "given");
    check_same(*ranks, facts);
  }
  const std::optional<Origin> origin = find_origin(config, request.reset, from, ranks);
  const std::optional<Origin> teacher = find_teacher(config);
  if (origin && !from.empty()) adopt_settings(config, origin->voice, false, listener);
  if (teacher) adopt_settings(config, teacher->voice, true, listener);
  if (teacher && origin && resolve_mel_spec(config).values() != resolve_mel_spec(origin->voice.config).values()) {
    reject_input("train", "{} was trained on other mels than {} makes", origin->file.string(), teacher->file.string());
  }
  if (ranks != nullptr) check_same(*ranks, facts_of(config));
  std::optional<PlannedCorpus> planned;
  std::optional<Corpus> validation;
  VoiceDescription voice;
  in_turn(ranks, [&] {
    planned.emplace(open_planned_corpus("train", config, CorpusPart::training, listener));
    if (ranks == nullptr || ranks->writes()) report_corpus(config.data.train_data, planned->corpus.index, listener);
    config = fit_settings(config, planned->corpus.index.summary().hours(), !from.empty());
    voice = describe_voice(config, planned->corpus, origin ? &origin->voice : nullptr);
    if (vocoder) voice.speakers.clear(), voice.languages.clear();
    const VoiceDescription& spoken_by = teacher ? teacher->voice : voice;
    planned->corpus.vocabulary = spoken_by.vocabulary;
    planned->corpus.number_as(spoken_by.speakers, spoken_by.languages);
    validation = open_validation_corpus(config, planned->corpus, listener);
    if (validation) validation->number_as(voice.speakers, voice.languages);
  });
  if (ranks != nullptr) {
    check_same(*ranks, facts_of(planned->corpus, validation ? &*validation : nullptr));
    check_same(*ranks, facts_of(voice));
    if (teacher) check_same(*ranks, facts_of(teacher->voice));
  }
  const bool fixed = config.data.batch_size.fixed();
  settle_batch_size(config, planned->corpus, mode, request.reset, ranks != nullptr ? ranks->place().count : 1,
                    listener);
  if (ranks != nullptr) {
    if (!fixed && config.data.batch_size.fixed()) {  // what fits into the memory of every rank
      const int64_t least = -ranks->largest({-config.data.batch_size.low}).front();
      if (least < config.data.batch_size.low) listener.tell(fmt::format("batch size {}: another rank has less", least));
      config.data.batch_size = {least, least};
    }
    check_same(*ranks, facts_of(config));
  }
  begin();
  TrainInput input{config, planned->corpus, validation ? &*validation : nullptr, mode, request.reset, voice};
  if (origin && !from.empty()) input.from = origin->file, input.origin = &origin->voice;
  if (teacher) input.teacher = teacher->file;
  input.ranks = ranks;
  return train(input, trained, stop);
}

}  // namespace

TrainSummary train_session(Config config, bool reset, const std::string& from, const SessionListener& listener,
                           const TrainListener& trained, const std::atomic<bool>& stop,
                           const std::function<void()>& begin) {
  if (config.training.optimization_level == "experimental") {
    listener.alert("--optimization-level experimental is the same as enhanced: nothing is on trial");
  }
  if (config.training.target != "vocoder" && !config.training.adversarial) {
    reject_input("train", "training.adversarial is for vocoders", way_out("add --target vocoder, or leave it out"));
  }
  const std::optional<RankPlace> place = find_rank();
  if (!place) return train_as_asked({config, reset, from, nullptr}, listener, trained, stop, begin);
  Ranks ranks(*place, fmt::format("version {}", program_version()), config.training.rank_timeout, listener.warn);
  try {
    return train_as_asked({config, reset, from, &ranks}, quiet(listener, place->rank), quiet(trained, place->rank),
                          stop, begin);
  } catch (const std::exception& error) {
    ranks.leave(error.what());
    throw;
  }
}

}  // namespace myxtts
