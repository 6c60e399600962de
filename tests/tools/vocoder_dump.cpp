// One step of a vocoder in float: losses and gradients of both groups, for the comparison with the twin.
//   vocoder_dump IN.safetensors OUT.safetensors
#include "artifacts/safetensors.h"
#include "synth/tensor_view.h"
#include "train/vocoder_trainable.h"

#include <cstdio>
#include <stdexcept>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

at::Tensor read(const SafetensorsFile& file, const std::string& name) {
  return as_tensor(file.tensor(name), "IN").clone();
}

void dump(const char* in, const char* out) {
  const SafetensorsFile file(in);
  const auto& metadata = file.metadata();
  const MelSpec& mel = mel_preset(metadata.at("mel"));
  const VocoderTrainable trainable(
      vocoder_spec(metadata.at("size"), mel, std::stod(metadata.at("mel_mean")), std::stod(metadata.at("mel_std"))),
      mel, {}, true, at::kCPU);
  const std::vector<ParameterGroup> groups = trainable.groups();
  std::vector<Weights> weights;
  for (const ParameterGroup& group : groups) {
    const at::Tensor flat = at::zeros({group.layout->elements()});
    const std::vector<at::Tensor> views = group.layout->views(flat);
    for (size_t i = 0; i < views.size(); ++i) views[i].copy_(read(file, "model." + group.layout->specs()[i].name));
    weights.push_back(make_weights(*group.layout, flat, true));
  }
  const TensorMap batch = {
      {"samples", read(file, "samples")}, {"mel", read(file, "mel")}, {"mel_lengths", read(file, "mel_lengths")}};
  std::vector<std::pair<std::string, at::Tensor>> results;
  for (size_t group = 0; group < groups.size(); ++group) {
    const std::vector<at::Tensor> losses = trainable.losses(group, weights, batch, {}, {});
    for (size_t i = 0; i < losses.size(); ++i) results.emplace_back(groups[group].losses[i], losses[i].detach());
    add_gradients(losses.front(), weights[group]);
    const std::vector<at::Tensor> gradients = groups[group].layout->views(weights[group].gradients);
    for (size_t i = 0; i < gradients.size(); ++i) {
      results.emplace_back("gradient." + groups[group].layout->specs()[i].name, gradients[i]);
    }
  }
  std::vector<TensorView> written;
  for (const auto& [name, tensor] : results) written.push_back(as_view(name, tensor));
  write_safetensors(out, written);
}

}  // namespace
}  // namespace myxtts

int main(int count, char** arguments) {
  try {
    if (count != 3) throw std::runtime_error("vocoder_dump IN.safetensors OUT.safetensors");
    myxtts::dump(arguments[1], arguments[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
