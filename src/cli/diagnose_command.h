// `diagnose` and its subcommands, each in a file of its own.
#pragma once

#include "cli/commands.h"

namespace myxtts {

void add_diagnose_bottleneck(CLI::App& diagnose, Program& program);
void add_diagnose_retracing(CLI::App& diagnose, Program& program);
void add_diagnose_report(CLI::App& diagnose, Program& program);
void add_diagnose_watch(CLI::App& diagnose, Program& program);

}  // namespace myxtts
