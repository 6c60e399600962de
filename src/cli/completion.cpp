// `myxtts completion bash|zsh`: a script made from the parser itself, so that it never falls behind.
#include "base/error.h"
#include "cli/commands.h"

#include <memory>

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

// One case per command: "train)" -> its flags and subcommands.
void append_cases(const CLI::App& app, const std::string& path, std::string& cases) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(child->get_name());
    append_cases(*child, path + "/" + child->get_name(), cases);
  }
  cases += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(words, " "));
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::string cases;
  append_cases(app, "", cases);
  const char* prologue = shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  return fmt::format(
      R"(# myxtts completion for {0}; load with:  source <(myxtts completion {0})
{1}_myxtts() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path='' word words=''
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -* ]] || case "$path/$word" in {2}) path="$path/$word" ;; esac
  done
  case "$path" in
{3}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -F _myxtts myxtts
)",
      shell, prologue,
      [&] {
        std::string known;
        for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
          known += (known.empty() ? "/" : "|/") + child->get_name();
          for (const CLI::App* grandchild : child->get_subcommands([](const CLI::App*) { return true; })) {
            known += "|/" + child->get_name() + "/" + grandchild->get_name();
          }
        }
        return known;
      }(),
      cases);
}

}  // namespace

void add_completion_command(CLI::App& app, Program& program) {
  const auto shell = std::make_shared<std::string>("bash");
  CLI::App* command = app.add_subcommand("completion", "print a completion script for bash or zsh");
  command->add_option("SHELL", *shell, "bash or zsh")->type_name("");
  command->callback([&app, &program, shell] {
    program.run = [&app, shell](Console&) {
      if (*shell != "bash" && *shell != "zsh")
        reject_input("completion", "no script for '{}'", *shell, way_out("there are bash, zsh"));
      fmt::print("{}", completion_script(app, *shell));
      return 0;
    };
  });
}

}  // namespace myxtts
