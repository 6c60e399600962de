// What the user sees: a progress bar on a terminal, plain lines elsewhere. Standard error is for progress and errors,
// standard output for results.
#pragma once

#include "base/clock.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace myxtts {

enum class LogLevel { error, warning, info, debug };

struct ConsoleSettings {
  LogLevel level = LogLevel::info;
  bool progress = true;
};

class Console {
 public:
  explicit Console(const ConsoleSettings& settings) : settings_(settings) {}

  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    if (settings_.level < LogLevel::info) return;
    fmt::print("{}\n", fmt::format(format, std::forward<Args>(args)...));
    std::fflush(stdout);  // whoever reads through a pipe reads it now
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    if (settings_.level >= LogLevel::warning) {
      fmt::print(stderr, "warning: {}\n", fmt::format(format, std::forward<Args>(args)...));
    }
  }

  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    if (settings_.level >= LogLevel::debug) info(format, std::forward<Args>(args)...);
  }

  bool shows_progress() const;
  bool redraws_results() const;  // standard output is a terminal, and its lines may be drawn again

 private:
  ConsoleSettings settings_;
};

// "label [=====     ] 512/1000  3 s left"; a status takes the place of the time left. Cut to the terminal. Redrawn at
// most ten times a second; gone when destroyed.
class ProgressBar {
 public:
  ProgressBar(const Console& console, std::string label, uint64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done, std::string_view status = {});

 private:
  const std::string label_;
  const uint64_t total_;
  const bool shown_;
  std::FILE* terminal_;  // stderr's own copy: decoders may silence stderr itself for a while
  Stopwatch elapsed_;
  double drawn_s_ = -1;
};

}  // namespace myxtts
