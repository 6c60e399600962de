#include "train/rank_check.h"

#include "base/error.h"
#include "base/hash.h"
#include "device/device.h"
#include "settings/settings.h"
#include "train/ranks.h"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>
#include <torch/version.h>

namespace myxtts {
namespace {

constexpr at::Tensor OptimizerState::*buffers[] = {
    &OptimizerState::master,  &OptimizerState::ema,     &OptimizerState::first_moment, &OptimizerState::second_moment,
    &OptimizerState::updates, &OptimizerState::skipped, &OptimizerState::skipped_total};

bool may_differ(const Setting& setting) {
  constexpr std::array paths = {"train_data",          "val_data", "vocabulary", "checkpoint_dir",
                                "tensorboard_log_dir", "teacher"};
  return setting.group == "loading" || std::ranges::find(paths, setting.key) != paths.end();
}

}  // namespace

void check_same(Ranks& ranks, const RankFacts& facts) {
  const std::vector<std::string> all = ranks.gather(nlohmann::json(facts).dump());
  const RankFacts wanted = nlohmann::json::parse(all.front()).get<RankFacts>();
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all.front()) continue;
    const RankFacts theirs = nlohmann::json::parse(all[rank]).get<RankFacts>();
    const auto [own, other] = std::ranges::mismatch(wanted, theirs);
    if (own == wanted.end() || other == theirs.end()) continue;
    reject_input("ranks", "{} of rank {} is {}, of rank 0 {}", other->first, rank, other->second, own->second,
                 way_out("all ranks need the same program, settings and files"));
  }
}

RankFacts facts_of(const Config& config) {
  RankFacts facts;
  for (const Setting& setting : all_settings()) {
    if (!may_differ(setting)) facts.emplace_back(setting.name(), value_text(setting, config));
  }
  return facts;
}

RankFacts facts_of(const Corpus& corpus, const Corpus* validation) {
  RankFacts facts;
  const auto add = [&](const std::string& name, const CorpusIndex& index) {
    const uint64_t lengths = hash_bytes(index.lengths().data(), index.lengths().size_bytes()),
                   labels = hash_bytes(index.labels().data(), index.labels().size_bytes());
    const CorpusSummary& summary = index.summary();
    facts.emplace_back(name, fmt::format("{} clips, {:.6f} s", index.size(), summary.seconds));
    facts.emplace_back("the length of the clips of " + name, fmt::format("hash {:016x}", lengths));
    facts.emplace_back("the speakers of the clips of " + name, fmt::format("hash {:016x}", labels));
    facts.emplace_back("the log-mel of " + name,
                       fmt::format("{:.9g} on average, std {:.9g}", summary.mel_mean, summary.mel_std));
    facts.emplace_back("the vocabulary of " + name, fmt::format("{}", fmt::join(summary.symbols, "")));
  };
  // First, because what is held out changes the other one.
  constexpr const char* held_out = "the validation corpus";
  if (validation != nullptr) {
    add(held_out, validation->index);
  } else {
    facts.emplace_back(held_out, "none");
  }
  add("the corpus", corpus.index);
  return facts;
}

RankFacts facts_of(const VoiceDescription& voice) {
  const auto list = [](const std::vector<std::string>& names) {
    return fmt::format("{}, hash {:016x}", names.size(), hash_text(fmt::format("{}", fmt::join(names, "\n")), 0));
  };
  return {{"the list of tokens",
           fmt::format("{}, hash {:016x}", voice.vocabulary.size(), hash_text(voice.vocabulary.to_json(), 0))},
          {"the list of speakers", list(voice.speakers)},
          {"the list of languages", list(voice.languages)},
          {"the language", voice.config.data.language},
          {"the log-mel of the voice", fmt::format("{:.9g} on average, std {:.9g}", voice.mel_mean, voice.mel_std)}};
}

RankFacts facts_of_device(int device) {
  return {{"libtorch", TORCH_VERSION},
          {"the device", device < 0 ? "a CPU with " + at::get_cpu_capability() : device_name(device)}};
}

void check_same(Ranks& ranks, const std::vector<OptimizerState>& states) {
  uint64_t hash = 0;
  for (const OptimizerState& state : states) {
    for (const auto buffer : buffers) {
      const at::Tensor host = (state.*buffer).cpu().contiguous();
      hash = hash_bytes(host.const_data_ptr(), host.nbytes(), hash);
    }
  }
  check_same(ranks, RankFacts{{"the weights", fmt::format("hash {:016x}", hash)}});
}

std::optional<FoundCheckpoint> broadcast(Ranks& ranks, const std::optional<FoundCheckpoint>& found) {
  const auto replace = nlohmann::json::error_handler_t::replace;  // a path may be no UTF-8
  const std::string text = ranks.broadcast(
      found ? nlohmann::json{found->first.string(), found->second}.dump(-1, ' ', false, replace) : std::string());
  if (text.empty() || ranks.writes()) return found;
  const nlohmann::json theirs = nlohmann::json::parse(text);
  return FoundCheckpoint{theirs[0].get<std::string>(), theirs[1].get<std::map<std::string, std::string>>()};
}

void broadcast(Ranks& ranks, std::vector<OptimizerState>& states) {
  const at::NoGradGuard no_gradients;
  for (OptimizerState& state : states) {
    for (const auto buffer : buffers) ranks.broadcast(state.*buffer);
  }
}

}  // namespace myxtts
