// step_dump IN.safetensors OUT.safetensors: losses and gradients of one step, which tests/program/test_parity.py
// compares with PyTorch. IN holds `model.*`, the batch and the noise; its metadata holds the size, mel_mean,
// mel_std and, where there is dropout, its rate and key.
#include "model/voice.h"
#include "synth/tensor_view.h"

#include <cstdio>
#include <exception>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

at::Tensor read(const SafetensorsFile& file, const std::string& name) {
  return as_tensor(file.tensor(name), "IN").clone();
}

void dump(const char* in, const char* out) {
  const SafetensorsFile file(in);
  VoiceBatch batch = {read(file, "tokens"), read(file, "text_lengths"), read(file, "mel_lengths"), read(file, "mel")};
  FlowNoise noise = {read(file, "time"), read(file, "noise")};
  VoiceSpec spec;
  if (file.find("model.speakers.table") != nullptr) {
    spec.speakers = file.tensor("model.speakers.table").shape[0];
    spec.languages = file.tensor("model.languages.table").shape[0];
    batch.speaker = read(file, "speaker"), batch.language = read(file, "language");
    batch.reference = read(file, "reference"), batch.reference_lengths = read(file, "reference_lengths");
    noise.kept = read(file, "kept"), noise.condition_dropout = std::stod(file.metadata().at("condition_dropout"));
  }
  if (file.metadata().contains("dropout")) {
    const int64_t key = std::stoll(file.metadata().at("dropout_key"));
    noise.dropout = {at::full({}, key, at::kLong), std::stod(file.metadata().at("dropout"))};
  }
  spec.size = model_size(file.metadata().at("size"));
  spec.vocabulary = file.tensor("model.encoder.embedding").shape[0];
  spec.n_mels = batch.mel.size(2);
  spec.mel_mean = std::stod(file.metadata().at("mel_mean"));
  spec.mel_std = std::stod(file.metadata().at("mel_std"));
  const Voice voice(spec);
  const at::Tensor flat = at::zeros({voice.layout().elements()});
  const std::vector<at::Tensor> views = voice.layout().views(flat);
  for (size_t i = 0; i < views.size(); ++i) views[i].copy_(read(file, "model." + voice.layout().specs()[i].name));
  const Weights weights = make_weights(voice.layout(), flat, true);
  const VoiceLosses losses = voice.losses(weights, batch, noise);
  losses.total.backward();

  std::vector<std::pair<std::string, at::Tensor>> results = {{"loss", losses.total.detach()},
                                                             {"loss_prior", losses["prior"].detach()},
                                                             {"loss_duration", losses["duration"].detach()},
                                                             {"loss_flow", losses["flow"].detach()},
                                                             {"token_of_frame", losses.token_of_frame}};
  const std::vector<at::Tensor> gradients = voice.layout().views(weights.gradients);
  for (size_t i = 0; i < gradients.size(); ++i)
    results.emplace_back("gradient." + voice.layout().specs()[i].name, gradients[i]);
  std::vector<TensorView> written;
  for (const auto& [name, tensor] : results) written.push_back(as_view(name, tensor));
  write_safetensors(out, written);
}

}  // namespace
}  // namespace myxtts

int main(int count, char** arguments) {
  try {
    if (count != 3) throw std::runtime_error("step_dump IN.safetensors OUT.safetensors");
    myxtts::dump(arguments[1], arguments[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
