#include "base/error.h"
#include "base/files.h"
#include "base/time_left.h"
#include "cli/session_console.h"
#include "session/torch/train_session.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace myxtts {
namespace {

struct Options {
  ConfigFlags flags;
  bool reset = false, resume = false;
  std::string from;
};

std::atomic<bool> stop_requested = false;

// The first asks for a tidy end, the second takes one at once.
void on_signal(int signal) {
  if (stop_requested.exchange(true)) ::_exit(128 + signal);
  constexpr char text[] = "\nstopping after this step; once more to leave at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof(text) - 1);
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// What matters most comes first: a narrow terminal cuts off the end.
std::string status_text(const TrainProgress& now) {
  const StepMetrics& logged = now.logged;
  std::string end = time_left_text(now.seconds_left);
  if (logged.step == 0) return end;
  const double busy = logged.value("gpu_busy");
  return fmt::format("loss {:.3f}  {}{}  epoch {}  {:.1f} clips/s  {:.0f} s audio/s  wait {:.1f} %  {}retraces {:.0f}",
                     logged.value("loss"),
                     std::isnan(now.distortion) ? "" : fmt::format("MCD {:.2f}  ", now.distortion), end, logged.epoch,
                     logged.value("samples_per_s"), logged.value("audio_s_per_s"),
                     100 * logged.value("input_wait_ms") / std::max(1e-9, logged.value("step_ms")),
                     std::isnan(busy) ? "" : fmt::format("GPU {:.0f} %  ", 100 * busy), logged.value("retraces"));
}

// On a terminal a progress bar, elsewhere a line every ten seconds.
TrainListener listener_of(SessionConsole& session, const Console& console) {
  TrainListener listener;
  listener.say = [&session](const std::string& text) { session.say(text); };
  listener.warn = [&session](const std::string& text) { session.warn(text); };
  listener.step = [&session](const TrainProgress& now) {
    session.progress("training", static_cast<uint64_t>(now.step), static_cast<uint64_t>(now.total), status_text(now));
  };
  if (console.shows_progress()) return listener;
  const auto since = std::make_shared<Stopwatch>();
  const auto first = std::make_shared<bool>(true);
  listener.logged = [&session, since, first](const TrainProgress& now) {
    constexpr double every_s = 10;
    if (!std::exchange(*first, false) && since->seconds() < every_s) return;
    since->restart();
    session.say(fmt::format("step {}/{}  {}", now.logged.step, now.total, status_text(now)));
  };
  return listener;
}

void print(const TrainSummary& summary, const Console& console) {
  const TrainSummary::Steps& steps = summary.steps;
  if (steps.this_session == 0) {
    console.info("nothing to do: {}",
                 summary.stopped_early
                     ? "it stopped early; training.early_stopping: none trains on"
                     : fmt::format("all {} steps are done; more of them with --epochs or --max-steps", steps.done));
  } else {
    console.info("{} {} of {} steps in {}; loss {:.4f} at first, {:.4f} at last; input wait {:.2f} %; {} retraces",
                 summary.interrupted ? "stopped after" : "done:", steps.done, steps.total,
                 duration_text(summary.seconds), summary.losses.first, summary.losses.last, summary.input_wait * 100,
                 steps.retraces);
  }
  console.info("checkpoint: {}\nreport:     {}", summary.checkpoint.string(), summary.report.string());
  if (summary.interrupted) console.info("the same command resumes from there");
}

nlohmann::ordered_json to_json(const TrainSummary& summary) {
  return {{"steps", summary.steps.done},
          {"total_steps", summary.steps.total},
          {"first_loss", summary.losses.first},
          {"last_loss", summary.losses.last},
          {"best_validation", summary.losses.best_validation},
          {"seconds", summary.seconds},
          {"input_wait", summary.input_wait},
          {"captures", summary.steps.captures},
          {"retraces", summary.steps.retraces},
          {"skipped", summary.steps.skipped},
          {"interrupted", summary.interrupted},
          {"stopped_early", summary.stopped_early},
          {"checkpoint", summary.checkpoint.string()},
          {"report", summary.report.string()}};
}

int run_train(const Options& options, const std::string& json_file, const Console& console) {
  if (options.reset && options.resume)
    reject_input("train", "--resume and --reset-training are opposites", way_out("give one"));
  SessionConsole session(console);
  const TrainSummary summary =
      train_session(options.flags.load().values, options.reset, options.from, session.listener(),
                    listener_of(session, console), stop_requested, catch_signals);
  session.end_progress();
  if (summary.rank != 0) return 0;
  print(summary, console);
  if (!json_file.empty()) write_file_atomically(json_file, to_json(summary).dump(2) + "\n");
  return 0;
}

}  // namespace

void add_train_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("train", "train a voice; resumes automatically if an earlier run stopped");
  command->add_flag("--resume", options->resume, "resume from the newest checkpoint (the default)");
  command->add_flag("--reset-training", options->reset, "move an earlier run to DIR.before-N and start anew");
  command->add_option("--from", options->from, "a voice whose weights to begin with: a checkpoint, or a folder of them")
      ->type_name("FILE");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags, Command::train);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return run_train(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
