#include "train/rank_metrics.h"

#include "train/ranks.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double mean_of(const std::vector<double>& values) { return sum_of(values) / static_cast<double>(values.size()); }

}  // namespace

void merge_metrics(Ranks& ranks, double ranks_wait_ms, StepMetrics& metrics) {
  const double own_ms = std::max(0.0, metrics.value("step_ms") - ranks_wait_ms);
  const nlohmann::json own = {own_ms,
                              metrics.value("input_wait_ms"),
                              ranks_wait_ms,
                              metrics.value("samples_per_s"),
                              metrics.value("audio_s_per_s"),
                              metrics.value("padding")};
  std::vector<std::vector<double>> of_ranks(own.size());
  for (const std::string& text : ranks.gather(own.dump())) {
    const auto values = nlohmann::json::parse(text).get<std::vector<double>>();
    for (size_t i = 0; i < values.size(); ++i) of_ranks[i].push_back(values[i]);
  }
  const std::vector<double>&own_times = of_ranks[0], &input_waits = of_ranks[1];
  metrics.set("input_wait_ms", *std::ranges::max_element(input_waits));
  metrics.set("samples_per_s", sum_of(of_ranks[3]));
  metrics.set("audio_s_per_s", sum_of(of_ranks[4]));
  metrics.set("padding", mean_of(of_ranks[5]));
  const auto slowest = std::ranges::max_element(own_times);
  metrics.add_count("ranks", "", static_cast<int64_t>(own_times.size()));
  metrics.add("ranks_wait_ms", "speed/ranks_wait_ms", mean_of(of_ranks[2]));
  metrics.add_count("slowest_rank", "", slowest - own_times.begin());
  metrics.add("slowest_rank_ms", "speed/slowest_rank_ms", *slowest);
  metrics.lists = {{"rank_ms", own_times}, {"rank_input_wait_ms", input_waits}};
}

std::vector<BadClip> gather_replaced(Ranks& ranks, const std::vector<BadClip>& own) {
  nlohmann::json list = nlohmann::json::array();
  for (const BadClip& bad : own) {
    list.push_back({bad.id, bad.path.string(), static_cast<int>(bad.code), bad.reason, bad.byte, bad.replaced_by});
  }
  std::vector<BadClip> all;
  const auto replace = nlohmann::json::error_handler_t::replace;  // a name may be no UTF-8
  for (const std::string& text : ranks.gather(list.dump(-1, ' ', false, replace))) {
    for (const nlohmann::json& bad : nlohmann::json::parse(text)) {
      all.push_back(
          {bad[0], bad[1].get<std::string>(), static_cast<ErrorCode>(bad[2].get<int>()), bad[3], bad[4], bad[5]});
    }
  }
  return all;
}

}  // namespace myxtts
