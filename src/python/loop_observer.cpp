#include "python/loop_observer.h"

#include "base/workers.h"
#include "diagnose/machine.h"
#include "diagnose/observer.h"
#include "diagnose/page.h"
#include "diagnose/report.h"
#include "diagnose/setup.h"
#include "python/feeder.h"

#include <optional>

#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nlohmann/json.hpp>

namespace nb = nanobind;

namespace myxtts {
namespace {

// Of a loader of ours it reads what each stage did; of any other one how long it was waited for.
class LoopObserver {
 public:
  LoopObserver(std::shared_ptr<Feeder> feeder, std::optional<size_t> workers)
      : feeder_(std::move(feeder)),
        workers_(workers),
        observer_(feeder_ ? std::function<LoaderStats()>([this] { return feeder_->stats(); }) : nullptr) {}

  Observer& observer() { return observer_; }

  // Verdict as JSON, as lines and as a page.
  std::tuple<std::string, std::string, std::string> finish(const std::string& subject, const std::string& consumer) {
    const Observation seen = observer_.finish();
    const PipelineSetup setup =
        feeder_ ? setup_of(feeder_->config(), feeder_->feed(), feeder_->planned().corpus) : foreign_setup();
    Diagnosis found = diagnose(seen, setup);
    if (feeder_) {
      const Corpus& corpus = feeder_->planned().corpus;
      found.checks = check_list(setup, view_machine(corpus.folder, bytes_of(corpus)));
    }
    nlohmann::ordered_json json = diagnosis_json(found);
    json["consumer"] = consumer, json["batches"] = seen.batches.size();
    return {json.dump(), fmt::format("{}", fmt::join(diagnosis_lines(found), "\n")),
            page_of(found, seen, setup, subject, consumer)};
  }

 private:
  PipelineSetup foreign_setup() const {
    PipelineSetup setup;
    setup.stages_known = false;
    setup.cores = available_cores();
    if (workers_) setup.workers = *workers_, setup.num_workers = fmt::format("{}", *workers_);
    return setup;
  }

  std::string page_of(const Diagnosis& found, const Observation& seen, const PipelineSetup& setup,
                      const std::string& subject, const std::string& consumer) const {
    DiagnosisPage page;
    page.title = fmt::format("What limits {}", subject);
    page.facts = {{"loader", subject},
                  {"consumer", consumer},
                  {"batches", fmt::format("{} in {:.1f} s", seen.batches.size(), seen.wall_s)},
                  {"processors used", fmt::format("{:.1f} of {}", seen.cpu_s / seen.wall_s, setup.cores)}};
    if (feeder_) {
      for (auto& fact : startup_facts(feeder_->feed(), feeder_->config(), feeder_->planned().plan)) {
        page.facts.push_back(std::move(fact));
      }
    }
    page.charts = observation_charts(seen, setup, feeder_ ? feeder_->planned().plan.shapes() : std::vector<Shape>());
    return make_diagnosis_page(found, page);
  }

  const std::shared_ptr<Feeder> feeder_;
  const std::optional<size_t> workers_;
  Observer observer_;
};

}  // namespace

void bind_loop_observer(nb::module_& module) {
  nb::class_<LoopObserver>(module, "LoopObserver", "What diagnose tells of its loop.")
      .def(nb::init<std::shared_ptr<Feeder>, std::optional<size_t>>(), nb::arg("feeder").none(),
           nb::arg("workers").none())
      .def(
          "begin", [](LoopObserver& self) { self.observer().begin(); }, "What came before was the warm-up.")
      .def(
          "ask", [](LoopObserver& self) { self.observer().ask(); }, "The next batch is asked for.")
      .def(
          "take",
          [](LoopObserver& self, const std::shared_ptr<HeldBatch>& batch) {
            self.observer().take(batch ? &batch->batch() : nullptr);
          },
          nb::arg("batch").none(), "It is there.")
      .def(
          "done", [](LoopObserver& self) { self.observer().done(); }, "It is done with.")
      .def(
          "end", [](LoopObserver& self) { self.observer().end(); }, "Ends what is observed.")
      .def(
          "replayed", [](LoopObserver& self, size_t shape, double ms) { self.observer().replayed(shape, ms); },
          nb::arg("shape"), nb::arg("ms"), "A batch that was kept took so long when consumed again.")
      .def("finish", &LoopObserver::finish, nb::arg("subject"), nb::arg("consumer"),
           "The verdict as JSON, as lines and as a page.");
}

}  // namespace myxtts
