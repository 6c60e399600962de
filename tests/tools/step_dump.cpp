// step_dump IN.safetensors OUT.safetensors: losses and gradients of one step, which tests/program/test_parity.py
// compares with PyTorch. IN holds `model.*`, the batch and the noise; its metadata holds the size, mel_mean,
// mel_std and, where there is dropout, its rate and key.
#include "dump.h"
#include "model/voice.h"

namespace myxtts {
namespace {

Results results_of(const SafetensorsFile& file) {
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
  const Weights weights = make_weights(voice.layout(), read_weights(file, voice.layout()), true);
  const VoiceLosses losses = voice.losses(weights, batch, noise);
  losses.total.backward();

  Results results = {{"loss", losses.total.detach()},
                     {"loss_prior", losses["prior"].detach()},
                     {"loss_duration", losses["duration"].detach()},
                     {"loss_flow", losses["flow"].detach()},
                     {"token_of_frame", losses.token_of_frame}};
  add_gradients_of(voice.layout(), weights, results);
  return results;
}

}  // namespace
}  // namespace myxtts

int main(int count, char** arguments) { return myxtts::dump(count, arguments, myxtts::results_of); }
