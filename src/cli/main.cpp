// The program: parse, call, and turn an Error into one sentence on stderr and an exit status.
#include "base/error.h"
#include "base/nearest.h"
#include "base/version.h"
#include "cli/diagnose_command.h"

#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

void collect_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(child->get_name());
}

// The deepest command that was reached: its names are what a misspelt word is compared with.
const CLI::App& reached(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : reached(*parsed.front());
}

// How to ask for help about it.
std::string help_call(const CLI::App& app) {
  std::string call = "myxtts ";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    call += at->get_name() + " ";
  }
  return call + "--help";
}

std::string unknown_word(const CLI::App& app, const char* const* arguments, int count) {
  const CLI::App& command = reached(app);
  std::vector<std::string> names;
  collect_names(command, names);
  for (int i = 1; i < count; ++i) {
    const std::string word = std::string(arguments[i]).substr(0, std::string_view(arguments[i]).find('='));
    const bool is_flag = word.starts_with("--");
    if (!is_flag && &command != &app) continue;
    if (std::find(names.begin(), names.end(), word) != names.end()) continue;
    std::vector<std::string> globals;
    collect_names(app, globals);
    if (std::find(globals.begin(), globals.end(), word) != globals.end()) continue;
    std::erase_if(names, [&](const std::string& name) { return name.starts_with("--") != is_flag; });
    const std::string near = nearest(word, names);
    if (edit_distance(word, near) <= std::max<size_t>(2, word.size() / 3)) {
      return fmt::format("'{}' is not known here; did you mean {}?", word, near);
    }
    return fmt::format("'{}' is not known here; there are {}", word, fmt::join(names, ", "));
  }
  return "the command line has a word too many";
}

LogLevel parse_log_level(const std::string& text) {
  const std::map<std::string, LogLevel> levels = {
      {"error", LogLevel::error}, {"warning", LogLevel::warning}, {"info", LogLevel::info}, {"debug", LogLevel::debug}};
  const auto found = levels.find(text);
  if (found == levels.end())
    reject_input("command line", "--log-level is '{}'", text, way_out("it must be error, warning, info or debug"));
  return found->second;
}

int run(int count, char** arguments) {
  CLI::App app{"MyXTTS trains text-to-speech voices and keeps the GPU busy while it does."};
  app.name("myxtts");
  app.set_version_flag("--version", std::string("myxtts ") + program_version());
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Every command answers --help. Exit status: 0 done, 1 failed, 2 wrong command line, config or input.");
  Program program;
  std::string level = "info";
  app.add_option("--log-level", level, "error, warning, info or debug")->type_name("");
  app.add_flag_callback(
      "--no-progress", [&] { program.console.progress = false; }, "no progress bar");
  add_train_command(app, program);
  add_synth_command(app, program);
  add_speakers_command(app, program);
  add_serve_command(app, program);
  add_export_command(app, program);
  add_prepare_command(app, program);
  add_batches_command(app, program);
  add_mel_command(app, program);
  add_bench_command(app, program);
  add_diagnose_command(app, program);
  add_demo_data_command(app, program);
  add_config_command(app, program);
  add_completion_command(app, program);

  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ExtrasError&) {
    reject_input("command line", "{}", unknown_word(app, arguments, count));
  } catch (const CLI::RequiredError& error) {
    if (&reached(app) == &app && count > 1) reject_input("command line", "{}", unknown_word(app, arguments, count));
    reject_input("command line", "{}", error.what(), way_out("see '{}'", help_call(app)));
  } catch (const CLI::ParseError& error) {
    reject_input("command line", "{}", error.what(), way_out("see '{}'", help_call(app)));
  }
  program.console.level = parse_log_level(level);
  Console console(program.console);
  return program.run(console);
}

}  // namespace

void add_json_option(CLI::App& command, Program& program) {
  command.add_option("--json", program.json_file, "write the results to this file")->type_name("FILE");
}

}  // namespace myxtts

int main(int count, char** arguments) {
  try {
    return myxtts::run(count, arguments);
  } catch (const myxtts::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return error.exit_status();
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: [internal] {}; please report this\n", error.what());
    return exit_status(myxtts::ErrorCode::failed);
  }
}
