#include "session/bottleneck_session.h"

#include "artifacts/run_report.h"
#include "base/error.h"
#include "base/files.h"
#include "diagnose/machine.h"
#include "diagnose/setup.h"
#include "session/model_consumer.h"
#include "settings/config_file.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

namespace myxtts {
namespace {

// Leaves the processors alone, as a step on a GPU does.
Consumer waiting_consumer(double ms, std::string name) {
  Consumer consumer;
  consumer.name = std::move(name);
  consumer.consume = [ms](const Batch&) {
    if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  };
  return consumer;
}

// Time per batch of a finished run, without its waiting.
double logged_ms(const std::filesystem::path& folder) {
  const RunRecord run = read_run(folder);
  const auto step = run.metrics.find("step_ms"), wait = run.metrics.find("input_wait_ms");
  if (step == run.metrics.end() || wait == run.metrics.end()) {
    reject_input("diagnose", "{} has no step times", (folder / "metrics.jsonl").string(),
                 way_out("is it the folder of a run?"));
  }
  std::vector<double> net;
  for (size_t i = 0; i < step->second.size() && i < wait->second.size(); ++i) {
    net.push_back(step->second[i].y - wait->second[i].y);
  }
  double batches = 1;
  if (const auto config = folder / "config.yaml"; std::filesystem::exists(config)) {
    constexpr uint64_t max_bytes = 1 << 20;
    batches = static_cast<double>(
        config_from_yaml(read_text_file(config, max_bytes), config.string()).training.gradient_accumulation_steps);
  }
  return summarize(net).p50 / batches;
}

ModelConsumer choose_consumer(const BottleneckOptions& options, const Config& config, const PlannedCorpus& planned,
                              const Mode& mode, const SessionListener& listener) {
  if (options.consumer_ms >= 0) {
    return {waiting_consumer(options.consumer_ms,
                             fmt::format("{:g} ms per batch, as --consumer-ms says", options.consumer_ms)),
            nullptr};
  }
  if (!options.run_folder.empty()) {
    const double ms = logged_ms(options.run_folder);
    return {waiting_consumer(ms, fmt::format("{:.1f} ms per batch, as {} has logged", ms, options.run_folder)),
            nullptr};
  }
  if (auto model = make_model_consumer(config, planned.corpus, planned.plan, mode)) return *std::move(model);
  listener.alert("this build has no libtorch, so no model takes the batches; give --consumer-ms or --run for its time");
  return {waiting_consumer(0, "nothing: each batch is taken at once"), nullptr};
}

}  // namespace

void BottleneckOptions::validate() const {
  if (batches < 8) reject_input("diagnose", "--num-batches is {}", batches, way_out("a verdict needs at least 8"));
  if (consumer_ms >= 0 && !run_folder.empty()) {
    reject_input("diagnose", "--consumer-ms and --run both name the consumer", way_out("give one"));
  }
}

BottleneckRun observe_bottleneck(const BottleneckOptions& options, const Config& config,
                                 const SessionListener& listener) {
  const Mode mode = choose_devices(config, listener);
  BottleneckRun run{open_planned_corpus("diagnose", config, CorpusPart::training, listener), {}, {}, {}, {}};
  run.feed = plan_feed(config, run.planned.corpus, run.planned.plan, mode);
  const ModelConsumer model = choose_consumer(options, config, run.planned, mode, listener);
  ObserveOptions wanted;
  wanted.batches = static_cast<size_t>(options.batches);
  wanted.seconds = options.seconds;
  if (listener.progress) {
    wanted.progress = [&](size_t done) { listener.progress("observing", done, wanted.batches); };
  }
  // Opened last: a ring that is full before the first batch is taken would hide what follows.
  run.observation = observe(open_batches(run.feed, config, run.planned, listener), model.consumer, wanted);
  run.setup = setup_of(config, run.feed, run.planned.corpus);
  MachineView machine = view_machine(config.data.train_data, bytes_of(run.planned.corpus));
  if (mode.model_device >= 0) view_gpu(machine, mode.model_device);  // while it is still warm
  run.diagnosis = diagnose(run.observation, run.setup);
  run.diagnosis.checks = check_list(run.setup, machine);
  return run;
}

}  // namespace myxtts
