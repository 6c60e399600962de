#include "python/feeder.h"

#include "base/error.h"
#include "base/hash.h"
#include "loader/row_builder.h"
#include "python/interruptible.h"
#include "python/options.h"
#include "python/without_gil.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

bool has(const std::vector<std::string>& arrays, const char* name) {
  return std::ranges::find(arrays, name) != arrays.end();
}

// What the row builder takes for granted of those who name its arrays.
void check_arrays(const std::vector<std::string>& arrays) {
  for (const std::string& name : arrays) {
    array_spec(name);
    if (std::ranges::count(arrays, name) > 1) reject_input("loader", "arrays name {} twice", name);
  }
  if (!has(arrays, "mel")) reject_input("loader", "arrays do not name mel", way_out("every batch has it; add it"));
  if (has(arrays, "samples") && (has(arrays, "tokens") || has(arrays, "text_lengths"))) {
    reject_input("loader", "arrays name samples, which are crops of clips, and tokens, which belong to whole clips",
                 way_out("leave one of the two out"));
  }
  if (has(arrays, "crop") && !has(arrays, "samples")) {
    reject_input("loader", "arrays name crop without samples", way_out("add samples"));
  }
  if (has(arrays, "reference_lengths") && !has(arrays, "reference")) {
    reject_input("loader", "arrays name reference_lengths without reference", way_out("add reference"));
  }
}

// A vocoder's crops need no texts.
Config with_target(Config config, const std::vector<std::string>& arrays) {
  config.training.target = has(arrays, "samples") ? "vocoder" : "voice";
  return config;
}

}  // namespace

Feeder::Feeder(const Config& config, const FeederOptions& options, const SessionListener& listener)
    : process_(::getpid()), config_(with_target(config, options.arrays)) {
  check_arrays(options.arrays);
  Mode mode = choose_devices(config_, listener);
  mode.processes = mode.on_cores = options.processes;
  planned_ = std::make_shared<const PlannedCorpus>(
      open_planned_corpus("loader", config_, options.validation ? CorpusPart::held_out : CorpusPart::training, listener,
                          has(options.arrays, "samples"), static_cast<int64_t>(options.world_size)));
  feed_ = plan_feed(config_, planned_->corpus, planned_->plan, mode);
  feed_.loader.arrays = options.arrays;
  feed_.loader.rank = options.rank, feed_.loader.world_size = options.world_size;
  for (const auto& [name, text] : startup_facts(feed_, config_, planned_->plan)) {
    listener.tell(fmt::format("{}: {}", name, text));
  }
  open_source();
}

Feeder::~Feeder() {
  std::optional<WithoutGil> released;
  if (PyGILState_Check() == 1 && !interpreter_exits()) released.emplace();  // the collector has it
  close();
}

void Feeder::check_process() const {
  if (::getpid() == process_) return;
  fail("loader", "it belongs to process {}, from which this one was forked", process_,
       way_out("open a Loader in this process, or start processes by spawn; it needs no worker processes"));
}

void Feeder::check_open() const {
  if (closed_) fail_as(ErrorCode::stopped, "loader", "it is closed", way_out("open another"));
}

std::shared_ptr<BatchSource> Feeder::open_source() {
  Feed feed;
  {
    const std::lock_guard lock(mutex_);
    check_open();
    if (source_ != nullptr) return source_;
    feed = feed_;
    feed.loader.epoch = position_.epoch, feed.loader.index = position_.index;
  }
  std::shared_ptr<BatchSource> opened = open_feed(feed, planned_->corpus, planned_->plan);
  const std::lock_guard lock(mutex_);
  check_open();  // it may have been closed meanwhile
  return source_ = std::move(opened);
}

std::shared_ptr<HeldBatch> Feeder::next(std::optional<uint64_t> epoch) {
  check_process();
  std::unique_lock turn(taking_, std::defer_lock);
  wait_for([&] { return turn.try_lock_for(between_signal_checks); });
  const KeepCurrentDevice keep(feed_.mode.model_device);
  const auto over = [&] { return epoch && position().epoch != *epoch; };
  std::shared_ptr<BatchSource> from;  // asked for anew after each wait: a signal's handler may close or seek
  wait_for([&] { return over() || (from = open_source())->wait(between_signal_checks); });
  if (over()) return nullptr;
  failed_ = true;
  BatchLease lease = from->next();
  failed_ = false;
  const bool last = lease->index + 1 == planned_->plan.batches_per_epoch();
  {
    const std::lock_guard lock(mutex_);
    position_ = last ? FeedPosition{lease->epoch + 1, 0} : FeedPosition{lease->epoch, lease->index + 1};
  }
  return std::make_shared<HeldBatch>(std::move(lease), planned_);
}

void Feeder::seek(FeedPosition position) {
  check_process();
  std::unique_lock turn(taking_, std::defer_lock);
  wait_for([&] { return turn.try_lock_for(between_signal_checks); });
  if (position.index >= planned_->plan.batches_per_epoch()) {
    reject_input("loader", "there is no batch {} in an epoch of {}", position.index,
                 planned_->plan.batches_per_epoch());
  }
  const KeepCurrentDevice keep(feed_.mode.model_device);
  std::shared_ptr<BatchSource> last;
  {
    const std::lock_guard lock(mutex_);
    check_open();
    if (position == position_ && source_ != nullptr && !failed_) return;
    position_ = position, last = std::move(source_);
  }
  last.reset();  // first, so that there is never memory for two rings
  failed_ = false;
  open_source();
}

void Feeder::close() {
  std::shared_ptr<BatchSource> last;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true, last = std::move(source_);
  }
  if (last == nullptr) return;
  if (::getpid() != process_) {
    new std::shared_ptr<BatchSource>(std::move(last));  // its threads are not here to be joined
    return;
  }
  const KeepCurrentDevice keep(feed_.mode.model_device);
  last->stop();
  const std::lock_guard turn(taking_);  // whoever waited has gone, and leaves the joining of threads to this one
  last.reset();
}

FeedPosition Feeder::position() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

LoaderStats Feeder::stats() const {
  check_process();
  std::shared_ptr<BatchSource> from;
  {
    const std::lock_guard lock(mutex_);
    check_open();
    from = source_;
  }
  return from ? from->stats() : LoaderStats();
}

uint64_t Feeder::plan_hash() const {
  const Corpus& corpus = planned_->corpus;
  uint64_t hash = hash_text(corpus.mel.description(), planned_->plan.seed());
  hash = hash_text(corpus.vocabulary.to_json(), hash);
  hash = hash_text(fmt::format("{} {}", fmt::join(feed_.loader.arrays, " "), corpus.index.content_hash()), hash);
  for (const Shape& shape : planned_->plan.shapes()) {
    const int64_t sizes[] = {shape.text_length, shape.mel_frames, shape.batch_size};
    hash = hash_bytes(sizes, sizeof sizes, hash);
    hash = hash_bytes(shape.clips.data(), shape.clips.size() * sizeof(uint32_t), hash);
  }
  return hash;
}

namespace {

// At the interpreter's exit their threads must have ended, whichever threads hold them.
class OpenFeeders {
 public:
  void add(const std::shared_ptr<Feeder>& feeder) {
    const std::lock_guard lock(mutex_);
    std::erase_if(feeders_, [](const std::weak_ptr<Feeder>& one) { return one.expired(); });
    feeders_.push_back(feeder);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Feeder>& one : feeders_) {
      if (const std::shared_ptr<Feeder> feeder = one.lock()) feeder->close();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Feeder>> feeders_;
};

OpenFeeders& open_feeders() {
  static OpenFeeders feeders;
  return feeders;
}

void close_all() {
  begin_exit();
  open_feeders().close();
}

std::shared_ptr<Feeder> open(const std::string& config_file, const Keywords& keywords, const FeederOptions& options) {
  const Config config = config_of(config_file, keywords, Command::bench);
  std::shared_ptr<Feeder> feeder;
  run_interruptibly([&](const SessionListener& listener) {
    feeder = std::make_shared<Feeder>(config, options, listener);
    open_feeders().add(feeder);
  });
  return feeder;
}

nb::list shapes_of(const Feeder& feeder) {
  nb::list shapes;
  const auto world_size = static_cast<int64_t>(feeder.feed().loader.world_size);
  for (const Shape& shape : feeder.planned().plan.shapes()) {
    nb::dict one;
    one["batch_size"] = shape.batch_size / world_size;
    one["text"] = shape.text_length, one["mel"] = shape.mel_frames;
    shapes.append(one);
  }
  return shapes;
}

nb::dict stats_of(const Feeder& feeder) {
  LoaderStats stats;
  {
    const WithoutGil released;
    stats = feeder.stats();
  }
  nb::dict dict;
  dict["batches"] = stats.batches, dict["seconds_of_audio"] = stats.seconds_of_audio;
  dict["bytes_read"] = stats.bytes_read, dict["consumer_waits_s"] = stats.consumer_waits_s;
  dict["ready_batches"] = stats.ready_batches, dict["ring_batches"] = stats.ring_batches;
  dict["active_workers"] = stats.active_workers;
  return dict;
}

}  // namespace

void bind_feeder(nb::module_& module) {
  const auto names = [](const std::vector<std::string>& list) { return list; };
  nb::class_<Feeder>(module, "Feeder", "What Loader drives.")
      .def("next", &Feeder::next, nb::arg("epoch") = nb::none(), nb::call_guard<WithoutGil>(),
           nb::sig("def next(self, epoch: int | None = None) -> Batch | None"),
           "The next batch; waits until it is ready. None if an epoch is given that is over.")
      .def(
          "seek",
          [](Feeder& self, uint64_t epoch, uint64_t index) {
            self.seek({epoch, index});
          },
          nb::arg("epoch"), nb::arg("index"), nb::call_guard<WithoutGil>(), "Continues with this batch.")
      .def("close", &Feeder::close, nb::call_guard<WithoutGil>(), "Ends its threads.")
      .def_prop_ro(
          "position", [](const Feeder& self) { return std::pair(self.position().epoch, self.position().index); },
          "Epoch and number of the next batch.")
      .def_prop_ro("batches_per_epoch", [](const Feeder& self) { return self.planned().plan.batches_per_epoch(); })
      .def_prop_ro(
          "plan_hash", [](const Feeder& self) { return fmt::format("{:016x}", self.plan_hash()); },
          "Of everything that the batches follow from; reads the whole index.")
      .def_prop_ro("shapes", shapes_of, nb::sig("def shapes(self) -> list[dict[str, int]]"))
      .def_prop_ro("speakers",
                   [names](const Feeder& self) { return names(self.planned().corpus.index.summary().speakers); })
      .def_prop_ro("languages",
                   [names](const Feeder& self) { return names(self.planned().corpus.index.summary().languages); })
      .def_prop_ro("vocabulary_json", [](const Feeder& self) { return self.planned().corpus.vocabulary.to_json(); })
      .def_prop_ro("vocabulary_size", [](const Feeder& self) { return self.planned().corpus.vocabulary.size(); })
      .def_prop_ro("sample_rate", [](const Feeder& self) { return self.planned().corpus.mel.sample_rate; })
      .def_prop_ro(
          "facts", [](const Feeder& self) { return startup_facts(self.feed(), self.config(), self.planned().plan); },
          "What was chosen: mode, buffer, shapes, workers.")
      .def("stats", stats_of, nb::sig("def stats(self) -> dict[str, float]"), "Counts and waiting times so far.");
  module.def(
      "open_feeder",
      [](const std::string& config, const Keywords& settings, std::vector<std::string> arrays, bool validation,
         uint64_t rank, uint64_t world_size, int processes) {
        return open(config, settings, {std::move(arrays), validation, rank, world_size, processes});
      },
      nb::arg("config"), nb::arg("settings"), nb::arg("arrays"), nb::arg("validation"), nb::arg("rank"),
      nb::arg("world_size"), nb::arg("processes"),
      "Opens the corpus named by data.train_data, indexing it first if needed.");
  module.def("close_all", &close_all, "For the interpreter's exit: lets all threads return, and ends every loader.");
  module.def("forget_other_threads", &forget_other_threads, "For the child of a fork.");
  module.def("array_names", &array_names, "Names of the arrays that a batch can hold.");
}

}  // namespace myxtts
