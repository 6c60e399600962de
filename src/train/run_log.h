// What a run leaves behind for people: metrics.jsonl, TensorBoard events, samples, quarantine.jsonl and the report
// page. None of it may end a run, on a full disk for instance: a failure is reported once. The thread that trains.
#pragma once

#include "artifacts/run_report.h"
#include "artifacts/tensorboard.h"
#include "corpus/quarantine.h"
#include "train/metrics.h"
#include "train/train.h"
#include "train/trainable.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace myxtts {

class RunLog {
 public:
  // Resumes after `step`. The listener is kept by reference. `writes`: false on ranks other than 0, which leave nothing
  // behind.
  RunLog(std::filesystem::path folder, const std::filesystem::path& tensorboard, int64_t step, bool writes,
         const TrainListener& listener);

  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (listener_.say) listener_.say(fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    if (listener_.warn) listener_.warn(fmt::format(format, std::forward<Args>(args)...));
  }
  // Of the same kind only the first is reported.
  void warn_once(const std::string& kind, const std::string& text);

  void add(const StepMetrics& metrics);  // one logged step, or one validation
  void add_samples(int64_t step, Samples samples);
  void add_replaced(std::span<const BadClip> replaced);

  void show_logged(const TrainProgress& progress) const;
  void show_progress(const TrainProgress& progress) const;

  // Settings are shown in the report, in this order.
  void set_settings(std::vector<std::pair<std::string, std::string>> settings) { settings_ = std::move(settings); }
  void write_report();
  void flush();

  std::filesystem::path report() const { return folder_ / "report.html"; }

 private:
  // Nothing if this rank writes nothing. `what` is named if it cannot be written.
  void tolerate(const std::string& what, const std::function<void()>& writing);

  const TrainListener& listener_;
  std::filesystem::path folder_;
  RunReader reader_;
  struct Files {
    Files(const std::filesystem::path& folder, const std::filesystem::path& tensorboard, int64_t step)
        : metrics(folder / "metrics.jsonl", step),
          events(tensorboard, step + 1),
          quarantine(folder / "quarantine.jsonl") {}
    MetricsFile metrics;
    EventWriter events;
    Quarantine quarantine;
  };
  std::optional<Files> files_;
  std::set<std::string> warned_;
  Samples samples_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

}  // namespace myxtts
