// How a session reports to whoever called it: the command line prints, a Python program may log. Every function may be
// empty. Called from the thread that called the session, unless noted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace myxtts {

struct SessionListener {
  std::function<void(const std::string&)> say = {};   // one line; also from the loader's threads
  std::function<void(const std::string&)> warn = {};  // likewise
  std::function<void(const std::string& what, uint64_t done, uint64_t total)> progress = {};

  void tell(const std::string& text) const {
    if (say) say(text);
  }
  void alert(const std::string& text) const {
    if (warn) warn(text);
  }
};

}  // namespace myxtts
