#include "cli/diagnose_command.h"

#include <CLI/CLI.hpp>

namespace myxtts {

void add_diagnose_command(CLI::App& app, Program& program) {
  CLI::App* diagnose = app.add_subcommand("diagnose", "what limits a run, and what to do about it");
  diagnose->require_subcommand(1);
  add_diagnose_bottleneck(*diagnose, program);
  add_diagnose_retracing(*diagnose, program);
  add_diagnose_watch(*diagnose, program);
  add_diagnose_report(*diagnose, program);
}

}  // namespace myxtts
