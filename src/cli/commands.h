// The commands. Each `add_*` describes one to the parser and leaves in `run` what to do when it was chosen.
#pragma once

#include "cli/console.h"
#include "settings/config_file.h"
#include "settings/settings.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace myxtts {

struct Program {
  ConsoleSettings console;
  std::string json_file;             // --json
  std::function<int(Console&)> run;  // set by the command that was parsed; returns the exit status
};

void add_config_command(CLI::App& app, Program& program);
void add_train_command(CLI::App& app, Program& program);
void add_synth_command(CLI::App& app, Program& program);
void add_speakers_command(CLI::App& app, Program& program);
void add_serve_command(CLI::App& app, Program& program);
void add_export_command(CLI::App& app, Program& program);
void add_prepare_command(CLI::App& app, Program& program);
void add_batches_command(CLI::App& app, Program& program);
void add_mel_command(CLI::App& app, Program& program);
void add_bench_command(CLI::App& app, Program& program);
void add_bench_loader(CLI::App& bench, Program& program);
void add_bench_step(CLI::App& bench, Program& program);
void add_bench_vocoder(CLI::App& bench, Program& program);
void add_bench_synth(CLI::App& bench, Program& program);
void add_diagnose_command(CLI::App& app, Program& program);
void add_demo_data_command(CLI::App& app, Program& program);
void add_completion_command(CLI::App& app, Program& program);

// --json FILE, for commands that report figures.
void add_json_option(CLI::App& command, Program& program);

// --config, --preset and a flag for each setting.
struct ConfigFlags {
  std::string file;
  std::string preset;
  std::vector<FlagValue> values;

  ResolvedConfig load() const { return load_config(file, preset, values); }
};
// The flags of the settings that `command` takes.
void add_config_flags(CLI::App& app, ConfigFlags& flags, Command command);

}  // namespace myxtts
