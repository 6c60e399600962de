// What a session reports, on the console: lines, warnings, and one progress bar at a time. Any thread.
#pragma once

#include "cli/commands.h"
#include "session/listener.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace myxtts {

class SessionConsole {
 public:
  // Keeps the reference. What is given out refers to this.
  explicit SessionConsole(const Console& console) : console_(console) {}

  SessionListener listener();

  void say(const std::string& text);
  void warn(const std::string& text);
  void progress(const std::string& what, uint64_t done, uint64_t total, std::string_view status = {});
  void end_progress();

 private:
  const Console& console_;
  std::mutex mutex_;
  std::string what_;
  std::unique_ptr<ProgressBar> bar_;
};

}  // namespace myxtts
