#include "cli/console.h"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

namespace myxtts {

bool Console::shows_progress() const {
  return settings_.progress && settings_.level >= LogLevel::info && ::isatty(STDERR_FILENO) == 1;
}

bool Console::redraws_results() const {
  return settings_.progress && settings_.level >= LogLevel::info && ::isatty(STDOUT_FILENO) == 1;
}

ProgressBar::ProgressBar(const Console& console, std::string label, uint64_t total)
    : label_(std::move(label)), total_(total), shown_(console.shows_progress()) {
  terminal_ = shown_ ? ::fdopen(::dup(STDERR_FILENO), "w") : nullptr;
}

ProgressBar::~ProgressBar() {
  if (terminal_ == nullptr) return;
  if (drawn_s_ >= 0) fmt::print(terminal_, "\r\033[K");
  std::fclose(terminal_);
}

void ProgressBar::update(uint64_t done, std::string_view status) {
  const double now_s = elapsed_.seconds();
  if (terminal_ == nullptr || total_ == 0 || now_s - drawn_s_ < 0.1) return;
  drawn_s_ = now_s;
  const uint64_t width = status.empty() ? 30 : 10;
  const uint64_t filled = width * done / total_;
  const double left_s = done == 0 ? 0 : now_s * static_cast<double>(total_ - done) / static_cast<double>(done);
  std::string line =
      fmt::format("{} [{}{}] {}/{}  {}", label_, std::string(filled, '='), std::string(width - filled, ' '), done,
                  total_, status.empty() ? fmt::format("{:.0f} s left", left_s) : std::string(status));
  winsize terminal{};  // a line that wraps would not be erased whole; it is plain ASCII
  if (::ioctl(::fileno(terminal_), TIOCGWINSZ, &terminal) == 0 && terminal.ws_col > 0) {
    line.resize(std::min<size_t>(line.size(), terminal.ws_col));
  }
  fmt::print(terminal_, "\r\033[K{}", line);
  std::fflush(terminal_);
}

}  // namespace myxtts
