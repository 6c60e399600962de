#include "diagnose/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json maybe(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

std::string gain_text(const Recommendation& one) {
  return one.gain ? fmt::format(", at most {:.1f} x as fast", *one.gain) : "";
}

Json ranks_json(const SlowRank& ranks) {
  return {{"count", ranks.count},
          {"slowest", ranks.slowest},
          {"slowest_ms", ranks.slowest_ms},
          {"median_ms", ranks.median_ms},
          {"slow", ranks.slow}};
}

}  // namespace

std::vector<std::string> diagnosis_lines(const Diagnosis& found) {
  std::vector<std::string> lines = {found.verdict, ""};
  for (const std::string& finding : found.findings) lines.push_back("  " + finding);
  lines.push_back(
      fmt::format("  batch time {:.1f} ms, std {:.1f} ms, median {:.1f} ms, 95 % below {:.1f} ms, at most "
                  "{:.1f} ms",
                  found.batch_ms.mean, found.batch_ms.std, found.batch_ms.p50, found.batch_ms.p95, found.batch_ms.max));
  if (found.headroom) {
    lines.push_back(
        fmt::format("  headroom {:.2f} x: speed-up of the consumer if data loading cost nothing", *found.headroom));
  }
  if (found.gpu_busy) lines.push_back(fmt::format("  GPU busy {:.0f} %", 100 * *found.gpu_busy));
  if (!found.stages.empty()) {
    lines.emplace_back();
    lines.push_back(fmt::format("  {:<10} {:>6}  {:>14}", "stage", "busy", "work per batch"));
    for (const StageLoad& load : found.stages) {
      const std::string work = load.ms_per_batch ? fmt::format("{:.1f} ms", *load.ms_per_batch) : "";
      lines.push_back(fmt::format("  {:<10} {:>4.0f} %  {:>14}{}", name_of(load.stage), 100 * load.busy, work,
                                  load.stage == found.limits ? "  <- limits" : ""));
    }
  }
  if (!found.checks.empty()) lines.emplace_back();
  for (const Check& check : found.checks) {
    lines.push_back(fmt::format("  [{}] {}: {}{}",
                                check.state == CheckState::ok          ? "ok"
                                : check.state == CheckState::attention ? "!!"
                                                                       : "??",
                                check.name, check.value, check.advice.empty() ? "" : "; " + check.advice));
  }
  lines.emplace_back();
  if (found.recommendations.empty()) lines.emplace_back("  nothing to recommend");
  for (const Recommendation& one : found.recommendations) {
    lines.push_back(fmt::format("  try {}: {} -> {}{}", one.setting, one.current, one.proposed, gain_text(one)));
    lines.push_back(fmt::format("      {}", one.reason));
  }
  return lines;
}

Json diagnosis_json(const Diagnosis& found) {
  Json stages = Json::object();
  for (const StageLoad& load : found.stages) {
    stages[std::string(name_of(load.stage))] = {{"busy", load.busy}, {"ms_per_batch", maybe(load.ms_per_batch)}};
  }
  Json recommendations = Json::array(), checks = Json::array();
  for (const Recommendation& one : found.recommendations) {
    recommendations.push_back({{"setting", one.setting},
                               {"current", one.current},
                               {"proposed", one.proposed},
                               {"reason", one.reason},
                               {"gain", maybe(one.gain)},
                               {"applies", one.applies}});
  }
  for (const Check& check : found.checks) {
    checks.push_back(
        {{"name", check.name}, {"state", name_of(check.state)}, {"value", check.value}, {"advice", check.advice}});
  }
  return {{"mean_ms", found.batch_ms.mean},
          {"std_ms", found.batch_ms.std},
          {"cv", found.batch_ms.cv},
          {"p50_ms", found.batch_ms.p50},
          {"p95_ms", found.batch_ms.p95},
          {"max_ms", found.batch_ms.max},
          {"cv_beside_shapes", found.steady_cv},
          {"oscillating", found.oscillating},
          {"period_batches", maybe(found.period_batches)},
          {"period_seen_in", found.period_seen_in},
          {"input_wait_fraction", found.input_wait_fraction},
          {"input_bound", found.input_bound == InputBound::no           ? "no"
                          : found.input_bound == InputBound::moderately ? "moderately"
                                                                        : "highly"},
          {"verdict", found.verdict},
          {"healthy", found.healthy},
          {"cause", name_of(found.cause)},
          {"findings", found.findings},
          {"slow_path", found.slow_path},
          {"limiting_stage", name_of(found.limits)},
          {"limits_by", found.limits_by},
          {"stages", stages},
          {"consumer_ms", found.consumer_ms},
          {"loading_ms", found.loading_ms},
          {"storage_mb_per_s", found.storage_mb_per_s},
          {"headroom", maybe(found.headroom)},
          {"gpu_busy", maybe(found.gpu_busy)},
          {"ranks", found.ranks ? ranks_json(*found.ranks) : Json()},
          {"recommendations", recommendations},
          {"checks", checks}};
}

}  // namespace myxtts
