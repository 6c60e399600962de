#include "python/interruptible.h"

#include "base/error.h"
#include "python/without_gil.h"

#include <atomic>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

void throw_if_exiting() {
  if (interpreter_exits()) fail_as(ErrorCode::stopped, "python", "the interpreter ends");
}

void throw_if_signalled() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

using Messages = std::vector<std::pair<const char*, std::string>>;  // level and text

void log(const Messages& messages) {
  if (messages.empty()) return;
  const nb::object logger = nb::module_::import_("logging").attr("getLogger")("myxtts");
  for (const auto& [level, text] : messages) logger.attr(level)("%s", text);
}

}  // namespace

void wait_for(const std::function<bool()>& wait_a_while) {
  for (throw_if_exiting(); !wait_a_while(); throw_if_exiting()) throw_if_signalled();
}

void run_interruptibly(const std::function<void(const SessionListener&)>& work) {
  throw_if_exiting();
  std::atomic<bool> cancelled = false;
  std::mutex mutex;
  Messages messages;
  const auto keep = [&](const char* level, const std::string& text) {
    const std::lock_guard lock(mutex);
    messages.emplace_back(level, text);
  };
  const SessionListener listener{[&](const std::string& text) { keep("info", text); },
                                 [&](const std::string& text) { keep("warning", text); },
                                 [&](const std::string& what, uint64_t, uint64_t) {
                                   if (cancelled) fail_as(ErrorCode::stopped, what, "it was interrupted");
                                 }};
  {
    const WithoutGil released;
    std::future<void> done = std::async(std::launch::async, [&] { work(listener); });
    try {
      wait_for([&] { return done.wait_for(between_signal_checks) == std::future_status::ready; });
    } catch (...) {  // of the wait: the work's own error is in `done`
      cancelled = true;
      done.wait();
      throw;
    }
    done.get();
  }
  log(messages);
}

}  // namespace myxtts
