#include "session/torch/retracing_session.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/system_calls.h"
#include "demo/demo_corpus.h"
#include "session/open.h"
#include "train/step_consumer.h"
#include "train/step_policy.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

// For those who have no corpus at hand; removed afterwards.
class TemporaryCorpus {
 public:
  explicit TemporaryCorpus(int64_t batch_size)
      : folder_((fs::temp_directory_path() / "myxtts-retracing-XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr) {
      fail("diagnose", "{} cannot be made: {}", folder_, system_reason(), way_out("set TMPDIR to a folder"));
    }
    DemoCorpusSettings settings;
    constexpr int64_t min_clips = 48, max_clips = 1000;
    settings.clips = static_cast<int>(std::clamp<int64_t>(3 * batch_size, min_clips, max_clips));
    make_demo_corpus(folder_, settings, [](int) {});
  }
  ~TemporaryCorpus() {
    std::error_code none;
    fs::remove_all(folder_, none);
  }
  TemporaryCorpus(const TemporaryCorpus&) = delete;
  TemporaryCorpus& operator=(const TemporaryCorpus&) = delete;

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

std::vector<SeenShape> seen_shapes(const StepConsumer& model, const Config& config, const PlannedCorpus& planned) {
  std::vector<SeenShape> shapes;
  for (const StepSignature& seen : model.shapes()) {
    const auto is_seen = [&](const Shape& shape) {
      return seen.rows == shape.batch_size && seen.text_length == shape.text_length &&
             seen.mel_frames == shape.mel_frames;
    };
    const std::vector<Shape>& declared = planned.plan.shapes();
    shapes.push_back({seen.rows, seen.text_length, seen.mel_frames, planned.corpus.mel.n_mels,
                      config.data.pad_to_fixed_length && std::any_of(declared.begin(), declared.end(), is_seen)});
  }
  return shapes;
}

}  // namespace

void observe_retracing(RetracingReport& report, Config config, int64_t steps, const SessionListener& listener) {
  std::optional<TemporaryCorpus> temporary;
  report.corpus = config.data.train_data;
  if (config.data.train_data.empty()) {
    temporary.emplace(config.data.batch_size.low);
    config.data.train_data = temporary->folder();
    report.corpus = "a small one made for this, since no --train-data is given";
  }
  const Mode mode = choose_devices(config, listener);
  const PlannedCorpus planned = open_planned_corpus("diagnose", config, CorpusPart::training, listener);
  StepConsumer model(config, planned.corpus, planned.plan, mode);
  const Consumer consumer = model.consumer();
  const std::unique_ptr<BatchSource> source =
      open_feed(plan_feed(config, planned.corpus, planned.plan, mode), planned.corpus, planned.plan);
  for (int64_t i = 0; i < steps; ++i) {
    const BatchLease batch = source->next(consumer.stream);
    const Stopwatch clock;
    consumer.consume(*batch);
    report.step_s.push_back(clock.seconds());
    if (listener.progress) {
      listener.progress("stepping", static_cast<uint64_t>(i) + 1, static_cast<uint64_t>(steps));
    }
  }
  if (steps > 1) report.step_s.erase(report.step_s.begin());  // libraries create their handles in the first
  report.steps = steps;
  report.captures = model.captures(), report.retraces = model.retraces(), report.changes = model.changes();
  report.captured = step_policy(config, mode.model_device >= 0).capture;
  report.shapes = seen_shapes(model, config, planned);
}

}  // namespace myxtts
