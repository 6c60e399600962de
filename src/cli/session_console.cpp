#include "cli/session_console.h"

namespace myxtts {

SessionListener SessionConsole::listener() {
  return {[this](const std::string& text) { say(text); }, [this](const std::string& text) { warn(text); },
          [this](const std::string& what, uint64_t done, uint64_t total) { progress(what, done, total); }};
}

void SessionConsole::say(const std::string& text) {
  const std::lock_guard lock(mutex_);
  bar_.reset();
  console_.info("{}", text);
}

void SessionConsole::warn(const std::string& text) {
  const std::lock_guard lock(mutex_);
  bar_.reset();
  console_.warn("{}", text);
}

void SessionConsole::progress(const std::string& what, uint64_t done, uint64_t total, std::string_view status) {
  const std::lock_guard lock(mutex_);
  if (!bar_ || what != what_) {
    bar_.reset();
    bar_ = std::make_unique<ProgressBar>(console_, what_ = what, total);
  }
  bar_->update(done, status);
  if (done >= total) bar_.reset();
}

void SessionConsole::end_progress() {
  const std::lock_guard lock(mutex_);
  bar_.reset();
}

}  // namespace myxtts
