#include "train/checkpoint.h"

#include "base/config_file.h"
#include "base/error.h"
#include "base/files.h"
#include "model/tensor_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr int format_version = 1;

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

at::Tensor tensor_of(const SafetensorsFile& file, const fs::path& path, const std::string& name,
                     at::IntArrayRef shape) {
  const TensorView& view = file.tensor(name);
  if (view.dtype != "F32" || !std::equal(view.shape.begin(), view.shape.end(), shape.begin(), shape.end())) {
    fail("checkpoint", "{}: {} is {} [{}], where F32 [{}] is expected", path.string(), name, view.dtype,
         fmt::join(view.shape, ", "), fmt::join(shape.vec(), ", "));
  }
  return as_tensor(view, path);
}

void load_flat(const SafetensorsFile& file, const fs::path& path, const std::string& prefix,
               const ParameterLayout& layout, at::Tensor& flat) {
  const std::vector<at::Tensor> views = layout.views(flat);
  for (size_t i = 0; i < views.size(); ++i) {
    views[i].copy_(tensor_of(file, path, prefix + layout.specs()[i].name, layout.specs()[i].shape));
  }
}

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
  const nlohmann::json mel = {{"mean", header.voice.mel_mean}, {"deviation", header.voice.mel_deviation}};
  write_safetensors(path, tensors,
                    {{"format", "myxtts"},
                     {"version", std::to_string(format_version)},
                     {"position", position.dump()},
                     {"config", config_to_yaml(header.voice.config)},
                     {"vocabulary", header.voice.vocabulary.to_json()},
                     {"corpus_mel", mel.dump()}});
}

CheckpointHeader read_checkpoint_header(const fs::path& path) {
  const SafetensorsFile file(path);
  const auto text = [&](const char* key) -> const std::string& {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end())
      reject_input("checkpoint", "{} is not a checkpoint of a voice: it has no '{}'", path.string(), key);
    return found->second;
  };
  if (text("format") != "myxtts" || text("version") != std::to_string(format_version)) {
    reject_input("checkpoint", "{} has version {}; this program reads {}", path.string(), text("version"),
                 format_version);
  }
  try {
    CheckpointHeader header;
    const nlohmann::json position = nlohmann::json::parse(text("position")),
                         mel = nlohmann::json::parse(text("corpus_mel"));
    header.position.step = position.at("step");
    header.position.epoch = position.at("epoch");
    header.position.batch = position.at("batch");
    header.position.plan = position.at("plan");
    if (!position.at("best_validation").is_null()) header.position.best_validation = position.at("best_validation");
    header.position.validations_without_progress = position.at("validations_without_progress");
    header.position.seconds = position.at("seconds");
    header.voice.config = config_from_yaml(text("config"), path.string());
    header.voice.vocabulary = Vocabulary::from_json(text("vocabulary"), path.string());
    header.voice.mel_mean = mel.at("mean");
    header.voice.mel_deviation = mel.at("deviation");
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
  for (const Part& counter : counters) (state.*counter.buffer).copy_(tensor_of(file, path, counter.prefix, {}));
}

at::Tensor load_average(const fs::path& path, const ParameterLayout& layout) {
  const SafetensorsFile file(path);
  file.verify();
  at::Tensor flat = at::zeros({layout.elements()}, at::kFloat);
  load_flat(file, path, "average.", layout, flat);
  return flat;
}

CheckpointFolder::CheckpointFolder(fs::path folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    reject_input("checkpoint", "{} cannot be made: {}; give another --checkpoint-dir", folder_.string(),
                 error.message());
}

CheckpointFolder::~CheckpointFolder() { wait(); }

namespace {

std::vector<fs::path> step_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".safetensors")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the numbers have leading zeros
  return files;
}

}  // namespace

std::optional<fs::path> CheckpointFolder::newest(const std::function<void(const std::string&)>& say) const {
  std::vector<fs::path> files = step_files(folder_);
  for (; !files.empty(); files.pop_back()) {
    try {
      SafetensorsFile(files.back()).verify();
      return files.back();
    } catch (const Error& error) {
      say(fmt::format("{}; the one before it is taken", error.what()));
    }
  }
  return std::nullopt;
}

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
  std::vector<fs::path> files = step_files(folder_);
  // Later ones are of a run that was cut back to an earlier one because they are damaged: out of the way, not away.
  for (; files.back() != written; files.pop_back()) fs::rename(files.back(), files.back().string() + ".damaged");
  for (size_t i = 0; i + static_cast<size_t>(keep_) < files.size(); ++i) fs::remove(files[i]);
}

std::optional<fs::path> CheckpointFolder::set_aside(const fs::path& folder) {
  if (!fs::exists(folder) || fs::is_empty(folder)) return std::nullopt;
  if (step_files(folder).empty() && !fs::exists(folder / "metrics.jsonl")) {
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
