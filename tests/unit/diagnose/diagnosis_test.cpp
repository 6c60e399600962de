#include "diagnose/diagnosis.h"

#include "base/error.h"
#include "diagnose/machine.h"
#include "diagnose/observation.h"
#include "diagnose/recommend.h"
#include "diagnose/report.h"
#include "diagnose/retracing.h"
#include "diagnose/run_diagnosis.h"
#include "settings/config_file.h"

#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

// Simulates a run with the given times of waiting, consuming and row work.
struct MadeUp {
  double wait_ms = 0, consume_ms = 50;
  double read_ms = 1, decode_ms = 1, features_ms = 2;  // summed over workers
  uint64_t bytes = 400'000;
  size_t batches = 100;
  int stall_every = 0;  // batches
  double stall_ms = 0;

  Observation observe() const {
    Observation seen;
    int64_t now_ns = 1'000'000'000;
    const auto ns = [](double ms) { return static_cast<int64_t>(ms * 1e6); };
    for (size_t i = 0; i < batches; ++i) {
      const bool stalled = stall_every > 0 && i % static_cast<size_t>(stall_every) == 7;
      ObservedBatch one;
      one.shape = i % 3;
      one.asked_ns = now_ns;
      one.wait_ms = wait_ms + (stalled ? stall_ms : 0);
      one.taken_ns = one.asked_ns + ns(one.wait_ms);
      // Realistic noise.
      one.done_ns = one.taken_ns + ns(consume_ms * (1 + 0.01 * static_cast<double>(i * 7 % 5)));
      now_ns = one.done_ns;
      one.times.read_s = 1e-3 * (read_ms + (stalled ? stall_ms : 0)), one.times.decode_s = 1e-3 * decode_ms;
      one.times.features_s = 1e-3 * features_ms, one.times.bytes_read = bytes;
      one.times.rows_done_ns = one.times.finished_ns = one.taken_ns;
      one.frames = 1000, one.true_frames = 900;
      seen.batches.push_back(one);
    }
    seen.wall_s = static_cast<double>(now_ns - 1'000'000'000) * 1e-9;
    seen.after.rows_busy_s = 1e-3 * (read_ms + decode_ms + features_ms) * static_cast<double>(batches);
    seen.free_ms = consume_ms;
    return seen;
  }
};

PipelineSetup usual() {
  PipelineSetup setup;
  setup.workers = 2, setup.cores = 2;
  return setup;
}

bool has(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

// A loader of somebody else's: only the waiting is known.
PipelineSetup foreign() {
  PipelineSetup setup;
  setup.stages_known = false;
  setup.cores = 8;
  return setup;
}

TEST(Diagnosis, of_a_foreign_loader_the_waiting_is_judged_and_no_stage_is_blamed) {
  const Diagnosis found = diagnose(MadeUp{.wait_ms = 50}.observe(), foreign());
  EXPECT_EQ(found.cause, Cause::input);
  EXPECT_EQ(found.limits, Stage::loading);
  EXPECT_EQ(found.verdict, "Data loading limits: the consumer waits for data 50 % of the time, 50 ms per batch.");
  EXPECT_EQ(found.stages.size(), 2U);
  EXPECT_FALSE(has(found.findings, "Slow path"));
  EXPECT_TRUE(found.recommendations.empty());
  EXPECT_TRUE(diagnose(MadeUp().observe(), foreign()).healthy);
  const Diagnosis stalls = diagnose(MadeUp{.stall_every = 10, .stall_ms = 800}.observe(), foreign());
  EXPECT_EQ(stalls.cause, Cause::stalls);
  EXPECT_EQ(stalls.verdict.find("The loader stalls for 800 ms every 10 batches"), 0U) << stalls.verdict;
}

TEST(Diagnosis, a_foreign_loader_that_says_how_few_workers_it_has_is_told_of_the_cores) {
  PipelineSetup setup = foreign();
  setup.workers = 2, setup.num_workers = fmt::format("{}", setup.workers);
  const Diagnosis found = diagnose(MadeUp{.wait_ms = 50}.observe(), setup);
  ASSERT_EQ(found.recommendations.size(), 1U);
  EXPECT_EQ(found.recommendations[0].setting, "num_workers");
  EXPECT_EQ(found.recommendations[0].proposed, "8");
  EXPECT_FALSE(found.recommendations[0].applies) << "it is no setting of ours";
  setup.workers = 8;
  EXPECT_TRUE(diagnose(MadeUp{.wait_ms = 50}.observe(), setup).recommendations.empty());
}

TEST(Diagnosis, a_run_that_never_waits_is_healthy_and_left_alone) {
  const Diagnosis found = diagnose(MadeUp().observe(), usual());
  EXPECT_TRUE(found.healthy);
  EXPECT_EQ(found.cause, Cause::none);
  EXPECT_EQ(found.limits, Stage::consumer);
  EXPECT_TRUE(found.recommendations.empty());
  EXPECT_FALSE(found.oscillating);
  EXPECT_FALSE(found.period_batches);
  EXPECT_NE(found.verdict.find("stable"), std::string::npos) << found.verdict;
  EXPECT_TRUE(has(found.findings, "Low variation: pipeline stable"));
  EXPECT_TRUE(has(found.findings, "Not input-bound"));
  EXPECT_TRUE(has(found.findings, "Data loading fast"));
  EXPECT_TRUE(has(found.findings, "Slow path not found"));
  EXPECT_NEAR(*found.headroom, 1, 0.05);
}

TEST(Diagnosis, the_share_of_waiting_has_its_limits_at_5_and_20_per_cent) {
  EXPECT_EQ(input_bound_of(0.049), InputBound::no);
  EXPECT_EQ(input_bound_of(0.051), InputBound::moderately);
  EXPECT_EQ(input_bound_of(0.199), InputBound::moderately);
  EXPECT_EQ(input_bound_of(0.201), InputBound::highly);
  MadeUp run;
  run.wait_ms = 50, run.read_ms = 190;
  EXPECT_NEAR(diagnose(run.observe(), usual()).input_wait_fraction, 0.5, 0.02);
}

TEST(Diagnosis, the_old_tools_outcomes_are_said_in_their_words) {
  EXPECT_EQ(variation_finding(0.6, 20.0, "batches"),
            "High variation detected (std/mean 0.60). Cyclic pattern identified: a slow one every 20.0 batches");
  EXPECT_EQ(variation_finding(0.51, {}, "batches"), "High variation detected (std/mean 0.51), without a period");
  EXPECT_EQ(variation_finding(0.19, {}, "batches"), "Low variation: pipeline stable (std/mean 0.19)");
  EXPECT_EQ(variation_finding(0.3, {}, "batches"), "Moderate variation (std/mean 0.30)");
  EXPECT_EQ(loading_finding(201), "Data loading slow: 201 ms per batch");
  EXPECT_EQ(loading_finding(150), "Data loading moderate: 150 ms per batch");
  EXPECT_EQ(loading_finding(99), "Data loading fast: 99 ms per batch");
  EXPECT_EQ(slow_path_finding(true), "Slow path found: data.use_native_loading is false");
  EXPECT_EQ(slow_path_finding(false), "Slow path not found");
}

TEST(Diagnosis, the_part_of_the_rows_that_takes_longest_is_named) {
  MadeUp run;
  run.wait_ms = 50, run.decode_ms = 180;
  Diagnosis found = diagnose(run.observe(), usual());
  EXPECT_EQ(found.cause, Cause::decoding);
  EXPECT_EQ(found.limits, Stage::decoding);
  EXPECT_FALSE(found.healthy);
  run.decode_ms = 1, run.features_ms = 180;
  EXPECT_EQ(diagnose(run.observe(), usual()).cause, Cause::features);
  run.features_ms = 1, run.read_ms = 190;
  found = diagnose(run.observe(), usual());
  EXPECT_EQ(found.cause, Cause::slow_storage) << found.storage_mb_per_s;
  EXPECT_NEAR(found.storage_mb_per_s, 0.4 / 0.095, 0.1);
  run.bytes = 40'000'000;
  found = diagnose(run.observe(), usual());
  EXPECT_EQ(found.cause, Cause::faster_than_storage) << found.storage_mb_per_s;
  EXPECT_NE(found.verdict.find("faster than the disk"), std::string::npos);
}

TEST(Diagnosis, more_workers_are_proposed_where_cores_are_idle_and_not_where_none_is) {
  MadeUp run;
  run.wait_ms = 50, run.decode_ms = 95;
  PipelineSetup setup = usual();
  setup.workers = 1, setup.num_workers = std::string(1, '1'), setup.cores = 4, setup.compressed_share = 1;
  const Diagnosis found = diagnose(run.observe(), setup);
  ASSERT_EQ(found.recommendations.size(), 2U);
  EXPECT_EQ(found.recommendations[0].setting, "data.num_workers");
  EXPECT_EQ(found.recommendations[0].current, "1");
  EXPECT_EQ(found.recommendations[0].proposed, "4");
  EXPECT_NEAR(*found.recommendations[0].gain, 2, 0.1) << "then the consumer limits";
  EXPECT_FALSE(found.recommendations[1].applies);
  setup.cores = 1, setup.compressed_share = 0;
  EXPECT_TRUE(diagnose(run.observe(), setup).recommendations.empty());
}

TEST(Diagnosis, the_slow_path_is_the_cause_where_it_is_on_and_waited_for) {
  PipelineSetup setup = usual();
  setup.native = false;
  MadeUp run;
  run.wait_ms = 30, run.features_ms = 28;
  const Diagnosis found = diagnose(run.observe(), setup);
  EXPECT_EQ(found.cause, Cause::slow_path);
  EXPECT_TRUE(found.slow_path);
  ASSERT_EQ(found.recommendations.size(), 1U);
  EXPECT_EQ(found.recommendations[0].setting, "data.use_native_loading");
  EXPECT_NEAR(*found.recommendations[0].gain, 82.0 / 51, 0.1);
  run.wait_ms = 1;
  EXPECT_TRUE(diagnose(run.observe(), setup).recommendations.empty()) << "nothing to gain";
}

TEST(Diagnosis, stalls_are_found_with_their_period) {
  MadeUp run;
  run.consume_ms = 10, run.stall_every = 20, run.stall_ms = 100, run.batches = 200;
  PipelineSetup setup = usual();
  setup.ring_batches = 2;
  const Diagnosis found = diagnose(run.observe(), setup);
  EXPECT_EQ(found.cause, Cause::stalls);
  EXPECT_EQ(found.limits, Stage::reading);
  EXPECT_TRUE(found.oscillating);
  ASSERT_TRUE(found.period_batches);
  EXPECT_NEAR(*found.period_batches, 20, 1);
  EXPECT_TRUE(has(found.findings, "Cyclic pattern identified"));
  ASSERT_EQ(found.recommendations.size(), 1U);
  EXPECT_EQ(found.recommendations[0].setting, "data.pipeline_buffer_size");
  EXPECT_GE(std::stoi(found.recommendations[0].proposed), 12) << "longer than the stall";
}

TEST(Diagnosis, stalls_that_the_ring_hides_are_told_but_are_no_problem) {
  Observation seen = MadeUp().observe();
  for (size_t i = 0, late = 0; i < seen.batches.size(); ++i) {
    if (i % 20 == 7) late += 1;
    seen.batches[i].times.finished_ns =
        static_cast<int64_t>(i) * 10'000'000 + static_cast<int64_t>(late) * 1'000'000'000;
  }
  const Diagnosis found = diagnose(seen, usual());
  EXPECT_TRUE(found.healthy);
  ASSERT_TRUE(found.period_batches);
  EXPECT_NEAR(*found.period_batches, 20, 1);
  EXPECT_FALSE(found.oscillating);
  EXPECT_NE(found.period_seen_in.find("ring hides"), std::string::npos);
}

TEST(Diagnosis, shapes_that_take_longer_are_no_oscillation) {
  Observation seen = MadeUp().observe();
  int64_t now_ns = 0;
  for (ObservedBatch& batch : seen.batches) {
    const int64_t long_ns = batch.shape == 2 ? 300'000'000 : 20'000'000;
    batch.asked_ns = batch.taken_ns = now_ns, batch.done_ns = now_ns += long_ns;
  }
  const Diagnosis found = diagnose(seen, usual());
  EXPECT_GT(found.batch_ms.cv, cyclic_cv);
  EXPECT_FALSE(found.oscillating);
  EXPECT_TRUE(found.healthy);
}

TEST(Diagnosis, a_ring_that_empties_does_not_hide_a_slow_loader) {
  Observation seen = MadeUp().observe();
  seen.before.ready_batches = 45, seen.after.ready_batches = 5;
  EXPECT_NEAR(diagnose(seen, usual()).input_wait_fraction, 0.4, 0.02) << "60 were made while 100 were taken";
  seen.after.plan_waits_for_room_s = seen.wall_s;
  EXPECT_TRUE(diagnose(seen, usual()).healthy) << "it had no room for more";
}

TEST(Diagnosis, workers_that_rest_while_the_consumer_waits_need_more_batches_to_read) {
  MadeUp run;
  run.wait_ms = 50;
  Observation seen = run.observe();
  seen.after.plan_waits_for_reading_s = 0.9 * seen.wall_s;
  const Diagnosis found = diagnose(seen, usual());
  EXPECT_EQ(found.cause, Cause::too_few_batches_read);
  ASSERT_FALSE(found.recommendations.empty());
  EXPECT_EQ(found.recommendations[0].setting, "data.prefetch_buffer_size");
}

TEST(Diagnosis, what_is_recommended_loads_as_a_config) {
  const std::string yaml =
      apply_recommendations({}, {{"data.num_workers", "1", "6", "", {}}, {"storage", "", "an SSD", "", {}, false}});
  EXPECT_EQ(config_from_yaml(yaml, "test").data.num_workers, (IntRange{6, 6}));
}

TEST(Diagnosis, its_json_has_the_promised_keys) {
  const nlohmann::json json = nlohmann::json::parse(diagnosis_json(diagnose(MadeUp().observe(), usual())).dump());
  for (const char* key :
       {"mean_ms", "std_ms", "cv", "p50_ms", "p95_ms", "max_ms", "oscillating", "period_batches", "input_wait_fraction",
        "verdict", "slow_path", "stages", "headroom", "gpu_busy", "recommendations"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

TEST(Machine, the_check_list_reads_proc_and_sys) {
  const fs::path root = fs::path(testing::TempDir()) / "myxtts_machine_test";
  fs::remove_all(root);
  const auto write = [&](const fs::path& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 2000000 kB\nCached: 500000 kB\n");
  write("proc/pressure/memory", "some avg10=0.00 avg60=25.00 avg300=1.00 total=5\n");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
  const MachineView view = view_machine(root, 3'000'000'000, root);
  EXPECT_EQ(view.available_bytes, 2'000'000U * 1024);
  EXPECT_EQ(view.cached_bytes, 500'000U * 1024);
  EXPECT_NEAR(*view.memory_pressure, 0.25, 1e-9);
  EXPECT_EQ(*view.governor, "performance, powersave");
  EXPECT_FALSE(view.rotational) << "there is no such disk here";
  PipelineSetup setup = usual();
  setup.static_shapes = false;
  std::map<std::string, CheckState> states;
  for (const Check& check : check_list(setup, view)) states[check.name] = check.state;
  EXPECT_EQ(states.size(), 10U);
  EXPECT_EQ(states["Native loading"], CheckState::ok);
  EXPECT_EQ(states["Static shapes"], CheckState::attention);
  EXPECT_EQ(states["Page cache"], CheckState::attention);
  EXPECT_EQ(states["CPU frequency"], CheckState::attention);
  EXPECT_EQ(states["Storage"], CheckState::unknown);
  fs::remove_all(root);
}

// A run with identical metrics in every line.
RunRecord recorded(double step_ms, double wait_ms, std::map<std::string, double> more = {}) {
  RunRecord run;
  run.name = "run";
  more["step_ms"] = step_ms, more["input_wait_ms"] = wait_ms;
  for (int step = 10; step <= 500; step += 10) {
    for (const auto& [key, value] : more) run.metrics[key].push_back({static_cast<double>(step), value});
  }
  return run;
}

TEST(RunDiagnosis, a_finished_run_is_judged_by_the_same_limits) {
  EXPECT_TRUE(diagnose_run(recorded(100, 1), {}).healthy);
  Diagnosis found = diagnose_run(recorded(100, 10), {});
  EXPECT_EQ(found.cause, Cause::input);
  EXPECT_EQ(found.input_bound, InputBound::moderately);
  EXPECT_NEAR(*found.headroom, 100.0 / 90, 1e-6);
  found = diagnose_run(recorded(100, 50, {{"loader_reading", 0.1}, {"loader_decoding", 0.8}, {"loader_features", 0.1}}),
                       {});
  EXPECT_EQ(found.cause, Cause::decoding);
  EXPECT_EQ(found.limits, Stage::decoding);
  EXPECT_NE(found.verdict.find("Decoding limited this run"), std::string::npos) << found.verdict;
  EXPECT_EQ(diagnose_run(recorded(100, 1, {{"gpu_busy", 0.3}}), {}).cause, Cause::gpu_under_used);
  EXPECT_TRUE(diagnose_run(recorded(100, 1, {{"gpu_busy", 0.95}}), {}).healthy);
  Config slow;
  slow.data.use_native_loading = false;
  found = diagnose_run(recorded(100, 50), slow);
  EXPECT_EQ(found.cause, Cause::slow_path);
  ASSERT_EQ(found.recommendations.size(), 1U);
  EXPECT_NEAR(*found.recommendations[0].gain, 2, 1e-6);
  EXPECT_EQ(diagnose_run(recorded(100, 1, {{"retraces", 400}}), {}).cause, Cause::retraces);
  EXPECT_THROW(diagnose_run(RunRecord(), {}), Error);
}

TEST(Retracing, each_setting_in_the_way_is_named_with_its_fix) {
  EXPECT_TRUE(retracing_problems({}).empty());
  Config config;
  config.training.enable_graph_mode = false, config.training.enable_eager_debug = true;
  std::vector<ConfigProblem> problems = retracing_problems(config);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].key, "training.enable_graph_mode");
  EXPECT_EQ(problems[1].key, "training.enable_eager_debug");
  for (const ConfigProblem& problem : problems) EXPECT_FALSE(problem.fix.empty());
}

ConfigProblem problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return problem_of_error(error);
  }
  return {};
}

TEST(Retracing, an_error_of_the_config_is_a_problem_with_its_key_and_fix) {
  const ConfigProblem setting = problem_of([] {
    reject_setting("config", "data.batch_size", "is '{}' ({})", "a; b", "my.yaml:3", way_out("it must be at least 1"));
  });
  EXPECT_EQ(setting.key, "data.batch_size");
  EXPECT_EQ(setting.problem, "data.batch_size is 'a; b' (my.yaml:3)");
  EXPECT_EQ(setting.fix, "it must be at least 1");
  const ConfigProblem yaml = problem_of([] { reject_input("config", "my.yaml:3 is not YAML: bad; worse"); });
  EXPECT_EQ(yaml.key, "config");
  EXPECT_EQ(yaml.problem, "my.yaml:3 is not YAML: bad; worse");
  EXPECT_EQ(yaml.fix, "");
}

TEST(Retracing, its_verdict_says_what_changed) {
  RetracingReport report;
  report.steps = 10, report.captures = 3;
  report.shapes = {{4, 16, 100, 80, true}};
  EXPECT_TRUE(report.healthy());
  EXPECT_NE(retracing_verdict(report).find("No retracing: 10 steps in 1 shape"), std::string::npos);
  report.retraces = 2, report.changes = {"mel frames 312 instead of 296", "text 9 instead of 8"};
  EXPECT_FALSE(report.healthy());
  EXPECT_NE(retracing_verdict(report).find("2 retraces in 10 steps in 1 shape, the first because of mel frames 312"),
            std::string::npos)
      << retracing_verdict(report);
}

}  // namespace
}  // namespace myxtts
