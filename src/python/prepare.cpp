#include "python/prepare.h"

#include "python/interruptible.h"
#include "python/options.h"
#include "session/prepare.h"
#include "session/prepare_report.h"

#include <fmt/ranges.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

// As JSON, as lines and as a page.
using Report = std::tuple<std::string, std::string, std::string>;

Report prepare(const std::string& path, const std::string& config_file, const Keywords& settings, bool deep) {
  const Config config = config_of(config_file, settings, Command::prepare);
  Report all;
  run_interruptibly([&](const SessionListener& listener) {
    const PreparedCorpus prepared = prepare_corpus(path, config, deep, listener);
    const PrepareReport report(path, prepared.corpus, config.data, prepared.advice);
    all = {report.to_json(), fmt::format("{}", fmt::join(report.lines(), "\n")), report.to_html()};
  });
  return all;
}

}  // namespace

void bind_prepare(nb::module_& module) {
  module.def("prepare", prepare, nb::arg("path"), nb::arg("config"), nb::arg("settings"), nb::arg("deep"),
             "Indexes and checks a corpus; returns what was found as JSON, as lines and as a page.");
}

}  // namespace myxtts
