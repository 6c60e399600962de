#include "train/rank_check.h"

#include "base/error.h"
#include "base/hash.h"
#include "settings/settings.h"
#include "train/ranks.h"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

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

RankFacts facts_of(const Corpus& corpus) {
  const CorpusIndex& index = corpus.index;
  const uint64_t lengths = hash_bytes(index.lengths().data(), index.lengths().size_bytes()),
                 labels = hash_bytes(index.labels().data(), index.labels().size_bytes());
  const CorpusSummary& summary = index.summary();
  return {
      {"the corpus", fmt::format("{} clips, {:.6f} s", index.size(), summary.seconds)},
      {"the length of the corpus's clips", fmt::format("hash {:016x}", lengths)},
      {"the speakers of the corpus's clips", fmt::format("hash {:016x}", labels)},
      {"the log-mel of the corpus", fmt::format("{:.9g} on average, std {:.9g}", summary.mel_mean, summary.mel_std)},
      {"the vocabulary of the corpus", fmt::format("{}", fmt::join(summary.symbols, ""))}};
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

void broadcast(Ranks& ranks, std::vector<OptimizerState>& states) {
  const at::NoGradGuard no_gradients;
  for (OptimizerState& state : states) {
    for (const auto buffer : buffers) ranks.broadcast(state.*buffer);
  }
}

}  // namespace myxtts
