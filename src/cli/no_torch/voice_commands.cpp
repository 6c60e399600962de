// `train`, `synth`, `speakers`, `serve` and `export` where no libtorch was found: they say so.
#include "base/error.h"
#include "cli/commands.h"
#include "cli/diagnose_command.h"

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

void add_missing(CLI::App& app, Program& program, const char* name, const char* meaning) {
  CLI::App* command = app.add_subcommand(name, std::string(meaning) + " (not in this build: no libtorch was found)");
  command->allow_extras();
  command->callback([&program, name] {
    program.run = [name](Console&) -> int {
      reject_input(name, "this build has no libtorch",
                   way_out("`pip install torch`, or set CMAKE_PREFIX_PATH, and build again"));
    };
  });
}

}  // namespace

void add_train_command(CLI::App& app, Program& program) { add_missing(app, program, "train", "train a voice"); }
void add_synth_command(CLI::App& app, Program& program) { add_missing(app, program, "synth", "speak a text"); }

void add_speakers_command(CLI::App& app, Program& program) {
  add_missing(app, program, "speakers", "list the speakers of a voice");
}

void add_serve_command(CLI::App& app, Program& program) { add_missing(app, program, "serve", "speak over HTTP"); }

void add_export_command(CLI::App& app, Program& program) {
  add_missing(app, program, "export", "write a voice for others to use");
}
void add_diagnose_retracing(CLI::App& diagnose, Program& program) {
  add_missing(diagnose, program, "retracing", "will the step be captured again and again?");
}
void add_bench_step(CLI::App& bench, Program& program) { add_missing(bench, program, "step", "a training step"); }
void add_bench_vocoder(CLI::App& bench, Program& program) { add_missing(bench, program, "vocoder", "a vocoder alone"); }
void add_bench_synth(CLI::App& bench, Program& program) { add_missing(bench, program, "synth", "text to samples"); }

}  // namespace myxtts
