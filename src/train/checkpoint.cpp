#include "train/checkpoint.h"

#include "base/error.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/json.h"
#include "base/system_calls.h"
#include "synth/tensor_view.h"
#include "synth/voice_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

struct Part {
  const char* name;
  at::Tensor OptimizerState::*buffer;
};
constexpr Part parts[] = {{"model.", &OptimizerState::master},
                          {"average.", &OptimizerState::ema},
                          {"first_moment.", &OptimizerState::first_moment},
                          {"second_moment.", &OptimizerState::second_moment}};
constexpr Part counters[] = {{"updates", &OptimizerState::updates},
                             {"skipped", &OptimizerState::skipped},
                             {"skipped_total", &OptimizerState::skipped_total}};

// The first group's counters have no suffix: a model of one group has one of each.
std::string counter_name(const Part& counter, const std::vector<ParameterGroup>& groups, size_t group) {
  return group == 0 ? counter.name : fmt::format("{}.{}", counter.name, groups[group].name);
}

// JSON has no word for what is not finite: it is null.
nlohmann::json finite(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

std::string to_text(const RunPosition& at) {
  const nlohmann::json position = {{"step", at.step},
                                   {"epoch", at.epoch},
                                   {"batch", at.batch},
                                   {"plan", at.plan},
                                   {"best_validation", finite(at.best_validation)},
                                   {"validations_without_progress", at.validations_without_progress},
                                   {"last_validation", at.last_validation},
                                   {"seconds", at.seconds}};
  return position.dump();
}

RunPosition position_from(const std::string& text) {
  const nlohmann::json json = parse_json(text);
  RunPosition position;
  position.step = json.at("step");
  position.epoch = json.at("epoch");
  position.batch = json.at("batch");
  position.plan = json.at("plan");
  if (!json.at("best_validation").is_null()) position.best_validation = json.at("best_validation");
  position.validations_without_progress = json.at("validations_without_progress");
  position.last_validation = json.value("last_validation", int64_t{0});  // not in checkpoints of 0.1
  position.seconds = json.at("seconds");
  return position;
}

// But for the lock of the one that asks.
bool holds_nothing(const fs::path& folder) {
  return std::ranges::all_of(list_folder(folder),
                             [](const fs::path& path) { return path.filename() == FolderLock::file_name; });
}

}  // namespace

void save_checkpoint(const fs::path& path, const CheckpointHeader& header, const std::vector<ParameterGroup>& groups,
                     const std::vector<OptimizerState>& states) {
  std::vector<TensorView> tensors;
  for (const Part& part : parts) {
    for (size_t group = 0; group < groups.size(); ++group) {
      const std::vector<ParameterSpec>& specs = groups[group].layout->specs();
      const std::vector<at::Tensor> views = groups[group].layout->views(states[group].*part.buffer);
      for (size_t i = 0; i < views.size(); ++i) tensors.push_back(as_view(part.name + specs[i].name, views[i]));
    }
  }
  for (const Part& counter : counters) {
    for (size_t group = 0; group < groups.size(); ++group) {
      tensors.push_back(as_view(counter_name(counter, groups, group), states[group].*counter.buffer));
    }
  }
  std::map<std::string, std::string> metadata = header.metadata;
  metadata["format"] = "myxtts";
  metadata["version"] = std::to_string(checkpoint_version);
  metadata["position"] = to_text(header.position);
  write_safetensors(path, tensors, metadata);
}

CheckpointHeader read_checkpoint_header(const fs::path& path) {
  return checkpoint_header(path, read_checkpoint_metadata(path));
}

CheckpointHeader checkpoint_header(const fs::path& path, std::map<std::string, std::string> metadata) {
  CheckpointHeader header;
  header.metadata = std::move(metadata);
  const auto found = header.metadata.find("position");
  if (found == header.metadata.end()) {
    reject_input("checkpoint", "{} is not a checkpoint of a run", path.string(),
                 way_out("give another --checkpoint-dir"));
  }
  try {
    header.position = position_from(found->second);
  } catch (const nlohmann::json::exception& error) {
    reject_input("checkpoint", "{} is damaged: {}", path.string(), error.what());
  }
  return header;
}

void load_checkpoint(const fs::path& path, const std::vector<ParameterGroup>& groups,
                     std::vector<OptimizerState>& states) {
  const at::NoGradGuard no_gradients;
  const SafetensorsFile file(path);
  file.verify();
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const Part& part : parts) load_flat(file, path, part.name, *groups[group].layout, states[group].*part.buffer);
    for (const Part& counter : counters) {
      const TensorView& saved = file.tensor(counter_name(counter, groups, group));
      (states[group].*counter.buffer).copy_(as_tensor(saved, path, {}));
    }
  }
  file.check_whole();
}

CheckpointFolder::CheckpointFolder(fs::path folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    reject_input("checkpoint", "{} cannot be made: {}", folder_.string(), error.message(),
                 way_out("give another --checkpoint-dir"));
}

CheckpointFolder::~CheckpointFolder() { wait(); }

void CheckpointFolder::save_in_background(const CheckpointHeader& header, const std::vector<ParameterGroup>& groups,
                                          const std::vector<OptimizerState>& states, bool best) {
  wait();
  std::vector<OptimizerState> copies(states.size());
  for (size_t group = 0; group < states.size(); ++group) {
    const auto copy = [&](const Part& part) {
      copies[group].*part.buffer = (states[group].*part.buffer).to(at::kCPU, false, true);
    };
    for (const Part& part : parts) copy(part);
    for (const Part& counter : counters) copy(counter);
  }
  writer_ = std::thread([this, header, &groups, copies, best] {
    const char* undone = "written";
    try {
      const fs::path path = folder_ / fmt::format("step-{:08}.safetensors", header.position.step);
      save_checkpoint(path, header, groups, copies);
      undone = "made best.safetensors";
      if (best) make_best(path);
      undone = nullptr;  // older ones that cannot be removed now are removed after the next
      remove_old(path);
    } catch (const std::exception& error) {
      if (undone == nullptr) return;
      error_ = fmt::format("the checkpoint of step {} was not {}: {}", header.position.step, undone, error.what());
    }
  });
}

void CheckpointFolder::wait() {
  if (writer_.joinable()) writer_.join();
}

std::optional<std::string> CheckpointFolder::take_error() {
  if (writer_.joinable()) return std::nullopt;  // not known before wait()
  return std::exchange(error_, std::nullopt);
}

// A second name for the same bytes: it costs nothing, and stays when the first is removed. A copy where the file system
// has no such names.
void CheckpointFolder::make_best(const fs::path& written) const {
  const fs::path temporary = folder_ / ".best.safetensors.tmp";
  std::error_code none;
  fs::remove(temporary, none);
  if (!link_file(written, temporary)) fs::copy_file(written, temporary);
  const fs::path best = folder_ / "best.safetensors";
  if (!replace_file(temporary, best)) fail("write", "{}: {}", best.string(), system_reason());
}

void CheckpointFolder::remove_old(const fs::path& written) const {
  std::vector<fs::path> files = step_checkpoints(folder_);
  if (std::ranges::find(files, written) == files.end()) return;  // a listing that is not whole decides nothing
  // Later ones are of a run that was cut back to an earlier one because they are damaged: out of the way, not away.
  std::error_code none;  // one that cannot be removed stays
  for (; files.back() != written; files.pop_back()) {
    fs::rename(files.back(), files.back().string() + ".damaged", none);
  }
  for (size_t i = 0; i + static_cast<size_t>(keep_) < files.size(); ++i) fs::remove(files[i], none);
}

std::optional<fs::path> CheckpointFolder::set_aside(const fs::path& folder) {
  if (!fs::exists(folder) || holds_nothing(folder)) return std::nullopt;
  if (step_checkpoints(folder).empty() && !fs::exists(folder / "metrics.jsonl")) {
    reject_input("checkpoint", "{} is not a folder of a run, and is not put aside for one", folder.string(),
                 way_out("give another --checkpoint-dir"));
  }
  for (int number = 1;; ++number) {
    fs::path aside = folder;
    aside += fmt::format(".before-{}", number);
    if (fs::exists(aside)) continue;
    fs::rename(folder, aside);
    return aside;
  }
}

}  // namespace myxtts
