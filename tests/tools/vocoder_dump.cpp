// One step of a vocoder in float: losses and gradients of both groups, for the comparison with the twin.
//   vocoder_dump IN.safetensors OUT.safetensors
#include "dump.h"
#include "train/vocoder_trainable.h"

namespace myxtts {
namespace {

Results results_of(const SafetensorsFile& file) {
  const auto& metadata = file.metadata();
  const MelSpec& mel = mel_preset(metadata.at("mel"));
  const VocoderTrainable trainable(
      vocoder_spec(metadata.at("size"), mel, std::stod(metadata.at("mel_mean")), std::stod(metadata.at("mel_std"))),
      mel, {}, true, at::kCPU, {});
  const std::vector<ParameterGroup> groups = trainable.groups();
  std::vector<Weights> weights;
  for (const ParameterGroup& group : groups) {
    weights.push_back(make_weights(*group.layout, read_weights(file, *group.layout), true));
  }
  const TensorMap batch = {
      {"samples", read(file, "samples")}, {"mel", read(file, "mel")}, {"mel_lengths", read(file, "mel_lengths")}};
  Results results;
  for (size_t group = 0; group < groups.size(); ++group) {
    const std::vector<at::Tensor> losses = trainable.losses(group, weights, batch, {}, {});
    for (size_t i = 0; i < losses.size(); ++i) results.emplace_back(groups[group].losses[i], losses[i].detach());
    add_gradients(losses.front(), weights[group]);
    add_gradients_of(*groups[group].layout, weights[group], results);
  }
  return results;
}

}  // namespace
}  // namespace myxtts

int main(int count, char** arguments) { return myxtts::dump(count, arguments, myxtts::results_of); }
