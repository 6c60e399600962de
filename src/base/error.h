// The one error type. A message is one sentence: the operation in brackets, what is wrong, and the way out:
//   [config] data.batch_size is -4 (my.yaml:3); it must be between 1 and 65536
// The library throws it and never prints; only `cli/` turns it into a line on stderr and an exit status.
#pragma once

#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace myxtts {

class Error : public std::runtime_error {
 public:
  enum class Kind {
    failed,       // the work was started and could not be done: exit status 1
    wrong_input,  // command line, config or input are wrong, nothing was started: exit status 2
  };

  Error(Kind kind, std::string_view operation, std::string_view what)
      : std::runtime_error(fmt::format("[{}] {}", operation, what)), kind_(kind) {}

  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

template <typename... Args>
[[noreturn]] void fail(std::string_view operation, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Error::Kind::failed, operation, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void reject_input(std::string_view operation, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Error::Kind::wrong_input, operation, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace myxtts
