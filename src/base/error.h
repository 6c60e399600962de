// The one error type. A program reads its parts; a user reads what(), one line made of them:
//   [config] data.batch_size is '-4' (my.yaml:3); it must be at least 1
//    where   message                              way out
// The library throws it and never prints; only `cli/` turns it into a line on stderr and an exit status. No caller
// takes the line apart: what a caller needs has an accessor.
//
//   fail("pack", "{} was cut short (at byte {})", path, at_byte(offset));
//   reject_input("train", "no corpus is named", way_out("give --train-data DIR"));
//   reject_setting("config", "data.batch_size", "is '{}'", text, way_out("it must be at least {}", 1));
//
// An Error is immutable and owns its parts; copies share them. Any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace myxtts {

// What a script, a binding or a server tells apart. The exit status follows from it.
enum class ErrorCode {
  failed,           // the work was started and could not be done
  unreadable,       // a file is cut short, damaged or of an unknown format
  changed,          // a file is not what the index of the corpus describes
  stopped,          // another thread ended the work
  out_of_memory,    // host, pinned or GPU memory
  missing,          // a named file is not there or cannot be opened; exit status 2 from here on
  invalid_input,    // the command line or an input is wrong, nothing was started
  invalid_setting,  // a setting has a wrong name or value, nothing was started
};

// As JSON has it: "invalid_setting".
constexpr const char* name_of(ErrorCode code) {
  constexpr const char* names[] = {"failed",        "unreadable", "changed",       "stopped",
                                   "out_of_memory", "missing",    "invalid_input", "invalid_setting"};
  return names[static_cast<int>(code)];
}

// 1: the work failed; 2: what the user gave is wrong.
constexpr int exit_status(ErrorCode code) { return code >= ErrorCode::missing ? 2 : 1; }

// What the user can do, or a hint at it.
struct WayOut {
  std::string text;
};

template <typename... Args>
WayOut way_out(fmt::format_string<Args...> format, Args&&... args) {
  return {fmt::format(format, std::forward<Args>(args)...)};
}

// Where a file broke. Formats as the number.
struct ByteOffset {
  uint64_t value = 0;
};

constexpr ByteOffset at_byte(uint64_t value) { return {value}; }

class Error : public std::runtime_error {
 public:
  struct Parts {
    ErrorCode code = ErrorCode::failed;
    std::string where;    // the operation: "config"
    std::string message;  // what is wrong
    std::string way_out;  // empty: none is known
    std::string setting;  // its key, of invalid_setting
    std::optional<uint64_t> byte_offset;
  };

  explicit Error(Parts parts)
      : std::runtime_error(fmt::format("[{}] {}", parts.where, sentence_of(parts))),
        parts_(std::make_shared<const Parts>(std::move(parts))) {}

  ErrorCode code() const { return parts_->code; }
  int exit_status() const { return myxtts::exit_status(parts_->code); }
  const std::string& where() const { return parts_->where; }
  const std::string& message() const { return parts_->message; }
  const std::string& way_out() const { return parts_->way_out; }
  const std::string& setting() const { return parts_->setting; }
  std::optional<uint64_t> byte_offset() const { return parts_->byte_offset; }

  // The message with its way out: what() without the operation.
  std::string sentence() const { return sentence_of(*parts_); }

 private:
  static std::string sentence_of(const Parts& parts) {
    return parts.way_out.empty() ? parts.message : parts.message + "; " + parts.way_out;
  }

  std::shared_ptr<const Parts> parts_;
};

namespace detail {

// Arguments that are parts of the error, beside or instead of being formatted.
template <typename Arg>
void take_part(Error::Parts&, const Arg&) {}
inline void take_part(Error::Parts& parts, const WayOut& way_out) { parts.way_out = way_out.text; }
inline void take_part(Error::Parts& parts, const ByteOffset& offset) { parts.byte_offset = offset.value; }

template <typename... Args>
[[noreturn]] void raise(Error::Parts parts, const Args&... args) {
  (take_part(parts, args), ...);
  throw Error(std::move(parts));
}

}  // namespace detail

}  // namespace myxtts

// A way out is an argument that no format has a place for; fmt demands that it could be formatted all the same.
template <>
struct fmt::formatter<myxtts::WayOut> : fmt::formatter<std::string> {
  auto format(const myxtts::WayOut& way_out, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(way_out.text, context);
  }
};

template <>
struct fmt::formatter<myxtts::ByteOffset> : fmt::formatter<uint64_t> {
  auto format(const myxtts::ByteOffset& offset, fmt::format_context& context) const {
    return fmt::formatter<uint64_t>::format(offset.value, context);
  }
};

namespace myxtts {

template <typename... Args>
[[noreturn]] void fail_as(ErrorCode code, std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  detail::raise({code, std::string(where), fmt::vformat(format, fmt::make_format_args(args...)), {}, {}, {}}, args...);
}

template <typename... Args>
[[noreturn]] void fail(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  fail_as<Args...>(ErrorCode::failed, where, format, std::forward<Args>(args)...);
}

template <typename... Args>
[[noreturn]] void reject_input(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  fail_as<Args...>(ErrorCode::invalid_input, where, format, std::forward<Args>(args)...);
}

// The message begins with the key: reject_setting("config", "model.size", "is '{}'", size).
template <typename... Args>
[[noreturn]] void reject_setting(std::string_view where, std::string_view key, fmt::format_string<Args...> format,
                                 Args&&... args) {
  const std::string problem = fmt::vformat(format, fmt::make_format_args(args...));
  detail::raise(
      {ErrorCode::invalid_setting, std::string(where), fmt::format("{} {}", key, problem), {}, std::string(key), {}},
      args...);
}

}  // namespace myxtts
