// `diagnose`: why is the GPU not busy? Each subcommand is a file of its own.
#pragma once

#include "cli/commands.h"

namespace myxtts {

void add_diagnose_command(CLI::App& app, Program& program);
void add_diagnose_watch(CLI::App& diagnose, Program& program);

}  // namespace myxtts
