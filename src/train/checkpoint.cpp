#include "train/checkpoint.h"

#include "base/error.h"
#include "base/files.h"
#include "settings/config_file.h"
#include "synth/tensor_view.h"
#include "synth/voice_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

struct Part {
  const char* prefix;
  at::Tensor OptimizerState::*buffer;
};
constexpr Part parts[] = {{"model.", &OptimizerState::master},
                          {"average.", &OptimizerState::average},
                          {"first_moment.", &OptimizerState::first_moment},
                          {"second_moment.", &OptimizerState::second_moment}};
constexpr Part counters[] = {{"updates", &OptimizerState::updates},
                             {"skipped", &OptimizerState::skipped},
                             {"skipped_total", &OptimizerState::skipped_total}};

// A number that JSON has no word for is left out.
nlohmann::json finite(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

}  // namespace

void save_checkpoint(const fs::path& path, const CheckpointHeader& header, const ParameterLayout& layout,
                     const OptimizerState& state) {
  std::vector<TensorView> tensors;
  for (const Part& part : parts) {
    const std::vector<at::Tensor> views = layout.views(state.*part.buffer);
    for (size_t i = 0; i < views.size(); ++i)
      tensors.push_back(as_view(part.prefix + layout.specs()[i].name, views[i]));
  }
  for (const Part& counter : counters) tensors.push_back(as_view(counter.prefix, state.*counter.buffer));
  const RunPosition& at = header.position;
  const nlohmann::json position = {{"step", at.step},
                                   {"epoch", at.epoch},
                                   {"batch", at.batch},
                                   {"plan", at.plan},
                                   {"best_validation", finite(at.best_validation)},
                                   {"validations_without_progress", at.validations_without_progress},
                                   {"seconds", at.seconds}};
  std::map<std::string, std::string> metadata = header.voice.to_metadata();
  metadata["format"] = "myxtts";
  metadata["version"] = std::to_string(checkpoint_version);
  metadata["position"] = position.dump();
  write_safetensors(path, tensors, metadata);
}

CheckpointHeader read_checkpoint_header(const fs::path& path) {
  const std::map<std::string, std::string> metadata = read_checkpoint_metadata(path);
  const auto found = metadata.find("position");
  if (found == metadata.end()) reject_input("checkpoint", "{} is no checkpoint of a run", path.string());
  try {
    CheckpointHeader header;
    const nlohmann::json position = nlohmann::json::parse(found->second);
    header.position.step = position.at("step");
    header.position.epoch = position.at("epoch");
    header.position.batch = position.at("batch");
    header.position.plan = position.at("plan");
    if (!position.at("best_validation").is_null()) header.position.best_validation = position.at("best_validation");
    header.position.validations_without_progress = position.at("validations_without_progress");
    header.position.seconds = position.at("seconds");
    header.voice = VoiceDescription::from_metadata(metadata, path);
    return header;
  } catch (const nlohmann::json::exception& error) {
    reject_input("checkpoint", "{} is damaged: {}", path.string(), error.what());
  }
}

void load_checkpoint(const fs::path& path, const ParameterLayout& layout, OptimizerState& state) {
  const at::NoGradGuard no_gradients;
  const SafetensorsFile file(path);
  file.verify();
  for (const Part& part : parts) load_flat(file, path, part.prefix, layout, state.*part.buffer);
  for (const Part& counter : counters) (state.*counter.buffer).copy_(as_tensor(file.tensor(counter.prefix), path, {}));
}

CheckpointFolder::CheckpointFolder(fs::path folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    reject_input("checkpoint", "{} cannot be made: {}; give another --checkpoint-dir", folder_.string(),
                 error.message());
}

CheckpointFolder::~CheckpointFolder() { wait(); }

void CheckpointFolder::remove_leftovers() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") && name.ends_with(".tmp")) fs::remove(entry.path());
  }
}

void CheckpointFolder::save_in_background(const CheckpointHeader& header, const ParameterLayout& layout,
                                          const OptimizerState& state, bool best) {
  wait();
  OptimizerState copy;
  for (const Part& part : parts) copy.*part.buffer = (state.*part.buffer).to(at::kCPU, false, true);
  for (const Part& counter : counters) copy.*counter.buffer = (state.*counter.buffer).to(at::kCPU, false, true);
  writer_ = std::thread([this, header, &layout, copy, best] {
    const fs::path path = folder_ / fmt::format("step-{:08}.safetensors", header.position.step);
    try {
      save_checkpoint(path, header, layout, copy);
      if (best) {
        // A second name for the same bytes: it costs nothing, and stays when the first is removed. A copy where the
        // file system has no such names.
        const fs::path temporary = folder_ / ".best.safetensors.tmp";
        std::error_code none;
        fs::remove(temporary, none);
        fs::create_hard_link(path, temporary, none);
        if (none) fs::copy_file(path, temporary);
        fs::rename(temporary, folder_ / "best.safetensors");
      }
      remove_old(path);
    } catch (const std::exception& error) {
      error_ = fmt::format("the checkpoint of step {} was not written: {}", header.position.step, error.what());
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

void CheckpointFolder::remove_old(const fs::path& written) const {
  std::vector<fs::path> files = step_checkpoints(folder_);
  // Later ones are of a run that was cut back to an earlier one because they are damaged: out of the way, not away.
  for (; files.back() != written; files.pop_back()) fs::rename(files.back(), files.back().string() + ".damaged");
  for (size_t i = 0; i + static_cast<size_t>(keep_) < files.size(); ++i) fs::remove(files[i]);
}

std::optional<fs::path> CheckpointFolder::set_aside(const fs::path& folder) {
  if (!fs::exists(folder) || fs::is_empty(folder)) return std::nullopt;
  if (step_checkpoints(folder).empty() && !fs::exists(folder / "metrics.jsonl")) {
    reject_input("checkpoint", "{} is no folder of a run, and is not put aside for one; give another --checkpoint-dir",
                 folder.string());
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
