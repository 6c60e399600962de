#include "train/run_log.h"

#include "base/files.h"

#include <cmath>

namespace myxtts {
namespace fs = std::filesystem;

RunLog::RunLog(fs::path folder, const fs::path& tensorboard, int64_t step, bool writes, const TrainListener& listener)
    : listener_(listener), folder_(std::move(folder)), reader_(folder_) {
  if (writes) files_.emplace(folder_, tensorboard, step);
}

void RunLog::warn_once(const std::string& kind, const std::string& text) {
  if (warned_.insert(kind).second) warn("{}", text);
}

void RunLog::tolerate(const std::string& what, const std::function<void()>& writing) {
  if (!files_) return;
  try {
    writing();
  } catch (const std::exception& error) {
    warn_once(what, fmt::format("{} cannot be written, and the run continues without: {}", what, error.what()));
  }
}

void RunLog::add(const StepMetrics& metrics) {
  tolerate("metrics.jsonl", [&] { files_->metrics.add(metrics); });
  tolerate("the TensorBoard file", [&] {
    for (const Metric& metric : metrics.values) {
      if (metric.tag.empty() || !std::isfinite(metric.value)) continue;
      files_->events.scalar(metric.tag, metrics.step, static_cast<float>(metric.value));
    }
    files_->events.flush();
  });
}

void RunLog::add_samples(int64_t step, Samples samples) {
  samples_ = std::move(samples);
  tolerate("a sample", [&] {
    const fs::path folder = folder_ / "samples";
    fs::create_directories(folder);
    for (const Picture& picture : samples_.pictures) {
      files_->events.image(picture.name, step, picture.png, picture.width, picture.height);
      write_file_atomically(folder / (picture.name + ".png"), picture.png, Sync::no);
    }
    for (const Sound& sound : samples_.sounds) {
      files_->events.audio(sound.name, step, std::as_bytes(std::span(sound.wav)), sound.sample_rate, sound.samples);
      write_file_atomically(folder / (sound.name + ".wav"), sound.wav, Sync::no);
    }
    files_->events.flush();
  });
}

void RunLog::add_replaced(std::span<const BadClip> replaced) {
  if (!replaced.empty()) tolerate("quarantine.jsonl", [&] { files_->quarantine.add(replaced); });
  for (const BadClip& bad : replaced) {
    warn_once(bad.id, fmt::format("{} is {}: {}", bad.id,
                                  bad.replaced_by.empty() ? "left out" : "replaced by " + bad.replaced_by, bad.reason));
  }
}

void RunLog::show_logged(const TrainProgress& progress) const {
  if (listener_.logged) listener_.logged(progress);
}

void RunLog::show_progress(const TrainProgress& progress) const {
  if (listener_.step) listener_.step(progress);
}

void RunLog::write_report() {
  tolerate("report.html", [this] {
    RunRecord run = reader_.read();
    run.settings = settings_;
    run.pictures = samples_.pictures;
    run.sounds = samples_.sounds;
    write_file_atomically(report(), make_run_report(run));
  });
}

void RunLog::flush() {
  tolerate("the TensorBoard file", [this] { files_->events.flush(); });
}

}  // namespace myxtts
