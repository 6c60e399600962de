#include "synth/voice_runner.h"

#include "model/cpu_products.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

// Lengths share a capture in steps of so many tokens and frames.
constexpr int64_t tokens_apart = 64, frames_apart = 96;
// A capture of more evaluations would cost more than it saves.
constexpr int64_t most_evaluations = 32;

int64_t rounded_up(int64_t length, int64_t apart) { return (length + apart - 1) / apart * apart; }

// Its stream is the thread's while it lives; nothing on a CPU.
class Turn {
 public:
  explicit Turn(at::Device device) : stream_(device.is_cuda() ? use_own_stream(device.index()) : nullptr) {}
  void wait() const {
    if (stream_) stream_->synchronize();
  }

 private:
  std::unique_ptr<OwnStream> stream_;
};

}  // namespace

VoiceRunner::VoiceRunner(const Voice& voice, const Weights& weights)
    : VoiceRunner(voice, weights,
                  weights.flat.device().is_cuda() ? make_graph_capturer(weights.flat.device().index()) : nullptr) {}

VoiceRunner::VoiceRunner(const Voice& voice, const Weights& weights, std::unique_ptr<GraphCapturer> capturer)
    : voice_(voice), weights_(weights), capturer_(std::move(capturer)) {
  if (weights.flat.is_cpu()) use_fast_cpu_products();
}

at::TensorOptions VoiceRunner::on_host(at::ScalarType type) const {
  return at::TensorOptions(type).pinned_memory(weights_.flat.is_cuda());
}

at::TensorOptions VoiceRunner::on_device(at::ScalarType type) const {
  return at::TensorOptions(type).device(weights_.flat.device());
}

const VoiceRunner::TextGraph* VoiceRunner::text_graph(int64_t tokens, bool guided) const {
  const TextKey key(rounded_up(tokens, tokens_apart), guided);
  const auto found = texts_.find(key);
  if (found != texts_.end()) return &found->second;
  if (captures() >= most_captures) return nullptr;
  return &texts_.emplace(key, capture_text(key.first, guided)).first->second;
}

const VoiceRunner::FramesGraph* VoiceRunner::frames_graph(int64_t frames, const SynthesisOptions& options) const {
  const FramesKey key(rounded_up(frames, frames_apart), options.steps, options.solver, options.sway, guided(options));
  const auto found = frames_.find(key);
  if (found != frames_.end()) return &found->second;
  if (captures() >= most_captures) return nullptr;
  return &frames_.emplace(key, capture_frames(std::get<0>(key), options)).first->second;
}

VoiceRunner::TextGraph VoiceRunner::capture_text(int64_t tokens, bool guided) const {
  const bool conditioned = voice_.spec().conditioned();
  const int64_t rows = guided ? 2 : 1, width = voice_.spec().size.decoder_width;
  TextGraph made;
  made.tokens = at::zeros({1, tokens}, on_host(at::kInt));
  made.numbers = at::tensor({1, 0}, at::kInt).to(on_host(at::kInt));
  made.vector = at::zeros({1, condition_width}, on_host(at::kFloat));
  made.log_durations = at::zeros({tokens}, on_host(at::kFloat));
  made.encoded.mu = at::zeros({rows, tokens, voice_.spec().n_mels}, on_device(at::kFloat));
  if (conditioned) made.encoded.condition = at::zeros({rows, width}, on_device(weights_.flat.scalar_type()));
  const at::Tensor device_tokens = made.tokens.to(on_device(at::kInt)),
                   device_numbers = made.numbers.to(on_device(at::kInt)),
                   device_vector = made.vector.to(on_device(at::kFloat));
  // What is captured holds handles of tensors, which a moved TextGraph keeps.
  const auto work = [this, guided, conditioned, device_tokens, device_numbers, device_vector, tokens = made.tokens,
                     numbers = made.numbers, vector = made.vector, log_durations = made.log_durations,
                     encoded = made.encoded] {
    device_tokens.copy_(tokens, /*non_blocking=*/true);
    device_numbers.copy_(numbers, true);
    device_vector.copy_(vector, true);
    const EncodedText text = voice_.encode_text(weights_, device_tokens, device_numbers.narrow(0, 0, 1), device_vector,
                                                device_numbers.narrow(0, 1, 1), guided);
    encoded.mu.copy_(text.mu);
    if (conditioned) encoded.condition.copy_(text.condition);
    log_durations.copy_(text.log_durations[0], true);
  };
  work();  // so that libraries make what they keep outside of a capture
  made.graph = capturer_->capture(work);
  return made;
}

VoiceRunner::FramesGraph VoiceRunner::capture_frames(int64_t frames, const SynthesisOptions& options) const {
  const bool conditioned = voice_.spec().conditioned();
  const int64_t rows = guided(options) ? 2 : 1, n_mels = voice_.spec().n_mels;
  FramesGraph made;
  made.noise = at::zeros({1, frames, n_mels}, on_host(at::kFloat));
  made.length = at::ones({1}, at::kInt).to(on_host(at::kInt));
  made.guidance = at::zeros({}, on_host(at::kFloat));
  made.mel = at::zeros({1, frames, n_mels}, on_host(at::kFloat));
  made.frame_mu = at::zeros({rows, frames, n_mels}, on_device(at::kFloat));
  if (conditioned) {
    made.condition = at::zeros({rows, voice_.spec().size.decoder_width}, on_device(weights_.flat.scalar_type()));
  }
  const at::Tensor device_noise = at::zeros(made.noise.sizes(), on_device(at::kFloat)),
                   device_length = made.length.to(on_device(at::kInt)),
                   device_guidance = at::zeros({}, on_device(at::kFloat));
  SynthesisOptions scaled = options;
  scaled.temperature = 1;  // the host scales the noise, so one capture serves all temperatures
  const auto work = [this, scaled, device_noise, device_length, device_guidance, noise = made.noise,
                     length = made.length, guidance = made.guidance, mel = made.mel, frame_mu = made.frame_mu,
                     condition = made.condition] {
    device_noise.copy_(noise, /*non_blocking=*/true);
    device_length.copy_(length, true);
    device_guidance.copy_(guidance, true);
    mel.copy_(voice_.speak_text(weights_, device_noise, frame_mu, device_length, condition, device_guidance, scaled),
              true);
  };
  work();
  made.graph = capturer_->capture(work);
  return made;
}

void VoiceRunner::encode(const TextGraph& text, const std::vector<int64_t>& tokens, const SpeakingAs& speaker) const {
  const auto count = static_cast<int64_t>(tokens.size());
  text.tokens.zero_();
  text.tokens[0].narrow(0, 0, count).copy_(at::tensor(tokens, at::kInt));
  text.numbers.copy_(at::tensor({count, speaker.language}, at::kInt));
  if (speaker.vector.defined()) text.vector[0].copy_(speaker.vector);
  text.graph->replay();
}

void VoiceRunner::speak(const FramesGraph& frames, const TextGraph& text, const std::vector<int64_t>& durations,
                        const SynthesisOptions& options) const {
  const int64_t count = std::accumulate(durations.begin(), durations.end(), int64_t{0}), n_mels = voice_.spec().n_mels;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  frames.noise.zero_();
  frames.noise[0].narrow(0, 0, count).copy_(at::randn({1, count, n_mels}, generator)[0] * options.temperature);
  frames.length.fill_(count);
  frames.guidance.fill_(options.guidance);
  const at::Tensor token_of_frame =
      at::arange(static_cast<int64_t>(durations.size())).repeat_interleave(at::tensor(durations));
  frames.frame_mu.zero_();
  frames.frame_mu.narrow(1, 0, count).copy_(text.encoded.mu.index_select(1, token_of_frame.to(on_device(at::kLong))));
  if (frames.condition.defined()) frames.condition.copy_(text.encoded.condition);
  frames.graph->replay();
}

SynthesizedMel VoiceRunner::synthesize(const std::vector<int64_t>& tokens, const SynthesisOptions& options,
                                       const SpeakingAs& speaker) const {
  const at::NoGradGuard no_gradients;
  if (!capturer_) return voice_.synthesize(weights_, tokens, options, speaker);
  const std::lock_guard lock(turn_);
  if (tokens.empty() || options.steps > most_evaluations) return voice_.synthesize(weights_, tokens, options, speaker);
  const Turn turn(weights_.flat.device());
  const auto count = static_cast<int64_t>(tokens.size());
  const TextGraph* const text = text_graph(count, guided(options));
  if (!text) return voice_.synthesize(weights_, tokens, options, speaker);
  encode(*text, tokens, speaker);
  turn.wait();
  SynthesizedMel said;
  said.durations = frames_of_tokens(text->log_durations.narrow(0, 0, count), options.speed);
  const int64_t length = std::accumulate(said.durations.begin(), said.durations.end(), int64_t{0});
  const FramesGraph* const frames = frames_graph(length, options);
  if (!frames) return voice_.synthesize(weights_, tokens, options, speaker);
  speak(*frames, *text, said.durations, options);
  turn.wait();
  said.mel = frames->mel[0].narrow(0, 0, length).clone();
  return said;
}

void VoiceRunner::warm_up(int64_t tokens, int64_t frames, const SynthesisOptions& options) const {
  const at::NoGradGuard no_gradients;
  const std::lock_guard lock(turn_);
  if (!capturer_) return;
  const Turn turn(weights_.flat.device());
  // The longest first: what it leaves in the common memory is enough for the others.
  for (int64_t count = rounded_up(frames, frames_apart); count > 0; count -= frames_apart) frames_graph(count, options);
  for (int64_t count = rounded_up(tokens, tokens_apart); count > 0; count -= tokens_apart) {
    text_graph(count, guided(options));
  }
  turn.wait();
}

}  // namespace myxtts
