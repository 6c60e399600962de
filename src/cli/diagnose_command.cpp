#include "cli/diagnose_command.h"

#include <CLI/CLI.hpp>

namespace myxtts {

void add_diagnose_command(CLI::App& app, Program& program) {
  CLI::App* diagnose = app.add_subcommand("diagnose", "why the GPU is not busy, measured and said in a sentence");
  diagnose->require_subcommand(1);
  add_diagnose_watch(*diagnose, program);
}

}  // namespace myxtts
