#include "synth/voice_file.h"

#include "artifacts/safetensors.h"
#include "base/error.h"
#include "base/files.h"
#include "synth/tensor_view.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <ATen/ATen.h>

namespace myxtts {
namespace fs = std::filesystem;

std::map<std::string, std::string> read_checkpoint_metadata(const fs::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, std::string> metadata(file.metadata().begin(), file.metadata().end());
  if (!metadata.contains("format") || !metadata.contains("version")) {
    reject_input("checkpoint", "{} is not a checkpoint of a voice: it has no 'format'", path.string());
  }
  if (metadata["format"] != "myxtts" || metadata["version"] != std::to_string(checkpoint_version)) {
    reject_input("checkpoint", "{} has version {}; this program reads {}", path.string(), metadata["version"],
                 checkpoint_version, way_out("use a version of myxtts that is as new as the file"));
  }
  return metadata;
}

VoiceDescription read_description(const fs::path& path) {
  return VoiceDescription::from_metadata(read_checkpoint_metadata(path), path);
}

VoiceDescription read_voice_description(const fs::path& path) {
  VoiceDescription voice = read_description(path);
  if (voice.config.training.target == "vocoder") {
    reject_input("checkpoint", "{} is a vocoder, no voice", path.string(), way_out("`synth --vocoder` takes it"));
  }
  return voice;
}

bool has_ema_weights(const fs::path& path, const ParameterLayout& layout) {
  const std::vector<std::string> names = SafetensorsFile(path).names();
  return std::ranges::find(names, "average." + layout.specs().front().name) != names.end();
}

at::Tensor load_ema_weights(const fs::path& path, const ParameterLayout& layout) {
  const SafetensorsFile file(path);
  check_parameters(file, path, "average.", layout);  // before memory is taken for them
  file.verify();
  at::Tensor flat = at::zeros({layout.elements()}, at::kFloat);
  load_flat(file, path, "average.", layout, flat);
  return flat;
}

std::vector<fs::path> step_checkpoints(const fs::path& folder) {
  std::vector<fs::path> files = list_folder(folder);  // sorted: the numbers have leading zeros
  std::erase_if(files, [](const fs::path& file) {
    const std::string name = file.filename().string();
    return !name.starts_with("step-") || !name.ends_with(".safetensors");
  });
  return files;
}

std::optional<fs::path> newest_checkpoint(const fs::path& folder, const std::function<void(const std::string&)>& warn) {
  std::vector<fs::path> files = step_checkpoints(folder);
  for (; !files.empty(); files.pop_back()) {
    try {
      SafetensorsFile(files.back()).verify();
      return files.back();
    } catch (const Error& error) {
      warn(fmt::format("{}; the one before it is taken", error.what()));
    }
  }
  return std::nullopt;
}

namespace {

// Where voices that ship lie: MYXTTS_VOICES, a clone's voices/, or what was installed beside the program.
std::vector<fs::path> voice_folders() {
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("MYXTTS_VOICES")) folders.emplace_back(named);
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const char* near : {"../voices", "../../voices", "../share/myxtts/voices"}) {
    folders.push_back((program / near).lexically_normal());
  }
  return folders;
}

bool is_name(const fs::path& path) {
  return !path.empty() && !path.has_parent_path() && !path.has_extension() && path != "." && path != "..";
}

fs::path shipped_voice(const std::string& name) {
  const std::vector<fs::path> folders = voice_folders();
  for (const fs::path& folder : folders) {
    if (fs::is_directory(folder / name)) return folder / name;
  }
  reject_input("voice", "there is no file or folder '{}', and no voice of that name in {}", name,
               folders.front().string(), way_out("name a checkpoint, or a folder of them"));
}

}  // namespace

fs::path find_voice(const fs::path& file_or_folder) {
  const bool shipped = is_name(file_or_folder) && !fs::exists(file_or_folder);
  fs::path place = shipped ? shipped_voice(file_or_folder.string()) : file_or_folder;
  if (!fs::is_directory(place)) return place;
  fs::path best = place / "best.safetensors";
  if (fs::exists(best)) return best;
  if (const auto newest = newest_checkpoint(place, [](const std::string&) {})) return *newest;
  reject_input("synth", "{} holds no checkpoint", place.string());
}

}  // namespace myxtts
