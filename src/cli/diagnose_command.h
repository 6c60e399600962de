// `diagnose` and its subcommands, each in a file of its own.
#pragma once

#include "cli/commands.h"

#include <string>
#include <vector>

namespace myxtts {

// The settings of a model that is fed with a corpus: those that such a subcommand takes.
std::vector<std::string> fed_model_keys();

void add_diagnose_bottleneck(CLI::App& diagnose, Program& program);
void add_diagnose_retracing(CLI::App& diagnose, Program& program);
void add_diagnose_report(CLI::App& diagnose, Program& program);
void add_diagnose_watch(CLI::App& diagnose, Program& program);

}  // namespace myxtts
