#include "synth/share_voice.h"

#include "artifacts/safetensors.h"
#include "base/error.h"
#include "model/voice.h"
#include "synth/tensor_view.h"
#include "synth/vocoder_file.h"
#include "synth/voice_file.h"

#include <ATen/ATen.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

ParameterLayout layout_of(const VoiceDescription& description) {
  if (description.config.training.target != "vocoder") return Voice(description.spec()).layout();
  const MelSpec mel = resolve_mel_spec(description.config);
  return Vocoder(vocoder_spec(description.config.model.size, mel, description.mel_mean, description.mel_std)).layout();
}

SharedFile share(const fs::path& from, const fs::path& to) {
  const ParameterLayout layout = layout_of(read_description(from));
  const at::Tensor flat = load_ema_weights(from, layout);
  const std::vector<at::Tensor> views = layout.views(flat);
  std::vector<at::Tensor> kept;
  std::vector<TensorView> tensors;
  for (size_t i = 0; i < views.size(); ++i) {
    kept.push_back(views[i].to(at::kBFloat16).contiguous());
    tensors.push_back(as_view("average." + layout.specs()[i].name, kept.back()));
  }
  SafetensorsMetadata metadata = SafetensorsFile(from).metadata();
  metadata.erase("checksum"), metadata.erase("header_checksum");
  write_safetensors(to, tensors, metadata);
  return {to, fs::file_size(to)};
}

}  // namespace

std::vector<SharedFile> share_voice(const fs::path& voice, const fs::path& vocoder, const fs::path& folder) {
  const fs::path file = find_voice(voice);
  fs::create_directories(folder);
  if (read_description(file).config.training.target == "vocoder") {
    return {share(file, folder / "vocoder.safetensors")};
  }
  const fs::path beside = file.parent_path() / "vocoder.safetensors";
  std::vector<SharedFile> files = {share(file, folder / "best.safetensors")};
  if (!vocoder.empty() || fs::exists(beside)) {
    const fs::path its_vocoder = vocoder.empty() ? beside : find_voice(vocoder);
    if (read_description(its_vocoder).config.training.target != "vocoder") {
      reject_input("export", "{} is a voice, no vocoder", its_vocoder.string(), way_out("leave --vocoder out"));
    }
    files.push_back(share(its_vocoder, folder / "vocoder.safetensors"));
  }
  return files;
}

}  // namespace myxtts
