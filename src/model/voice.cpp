#include "model/voice.h"

#include "base/error.h"
#include "model/blocks.h"
#include "model/condition.h"
#include "model/flow_solver.h"
#include "model/fused_calls.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

constexpr double sigma_min = 1e-4;  // noise level at the end of the flow
// Of the duration predictor, which overfits first: this many times the dropout of the rest, up to a limit.
constexpr double duration_dropout = 5, max_duration_dropout = 0.5;

// First dropout site of each part; a trunk has two per block.
enum Site : uint32_t {
  embedding_site = 0,
  duration_site = 100,
  encoder_site = 1000,
  decoder_site = 2000,
  reference_site = 3000
};

at::Tensor masked_sum(const at::Tensor& values, const at::Tensor& valid) {
  return at::where(valid, values, at::zeros({}, values.options())).sum();
}

}  // namespace

const Inspect Voice::no_inspect = {};

Voice::Block Voice::add_block(const std::string& name, int64_t width, int64_t kernel, bool decoder) {
  const double init_std = 1 / std::sqrt(static_cast<double>(width));
  const int64_t hidden = (decoder ? decoder_factor : encoder_factor) * width;
  Block block{};
  if (!decoder) block.attention_norm = layout_.add(name + ".attention.norm", {width}, 0, 1);
  block.attention_in = layout_.add_to_trunk(name + ".attention.in", {3 * width, width}, init_std);
  block.attention_out = layout_.add_to_trunk(name + ".attention.out", {width, width}, init_std / 2);
  if (!decoder) block.ffn_norm = layout_.add(name + ".feed.norm", {width}, 0, 1);
  block.ffn_in = layout_.add_to_trunk(name + ".feed.in", {hidden, kernel * width},
                                      init_std / std::sqrt(static_cast<double>(kernel)));
  block.ffn_out =
      layout_.add_to_trunk(name + ".feed.out", {width, hidden}, 0.5 / std::sqrt(static_cast<double>(hidden)));
  if (decoder && spec_.convolutions) {
    block.depthwise = layout_.add_to_trunk(name + ".feed.depthwise", {decoder_kernel, width}, 0);
  }
  return block;
}

Voice::Voice(const VoiceSpec& spec, bool fused) : spec_(spec), fused_(fused) {
  const int64_t width = spec.size.encoder_width, decoder_width = spec.size.decoder_width;
  const auto fan_in = [](int64_t inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); };
  embedding_ = layout_.add("encoder.embedding", {spec.vocabulary, width}, 1);
  for (int64_t i = 0; i < spec.size.encoder_blocks; ++i) {
    const int64_t kernel = spec.convolutions ? encoder_kernel : 1;
    encoder_.push_back(add_block("encoder.blocks." + std::to_string(i), width, kernel, false));
  }
  encoder_norm_ = layout_.add("encoder.norm", {width}, 0, 1);
  mu_weight_ = layout_.add("encoder.mu.weight", {spec.n_mels, width}, fan_in(width));
  mu_bias_ = layout_.add("encoder.mu.bias", {spec.n_mels}, 0);
  if (spec.convolutions) {
    for (int64_t i = 0; i < duration_layers; ++i) {
      const std::string name = "duration.layers." + std::to_string(i);
      duration_.push_back(
          {layout_.add(name + ".weight", {width, duration_kernel * width}, fan_in(duration_kernel * width)),
           layout_.add(name + ".bias", {width}, 0), layout_.add(name + ".norm", {width}, 0, 1)});
    }
  } else {
    duration_.push_back({layout_.add("duration.in.weight", {width, width}, fan_in(width)),
                         layout_.add("duration.in.bias", {width}, 0), 0});
  }
  duration_out_ = layout_.add("duration.out.weight", {1, width}, fan_in(width));
  duration_out_bias_ = layout_.add("duration.out.bias", {1}, 0);

  decoder_in_ = layout_.add("decoder.in.weight", {decoder_width, 2 * spec.n_mels}, fan_in(2 * spec.n_mels));
  decoder_in_bias_ = layout_.add("decoder.in.bias", {decoder_width}, 0);
  time_in_ = layout_.add("decoder.time.in.weight", {decoder_width, time_embedding_width}, fan_in(time_embedding_width));
  time_in_bias_ = layout_.add("decoder.time.in.bias", {decoder_width}, 0);
  time_out_ = layout_.add("decoder.time.out.weight", {decoder_width, decoder_width}, fan_in(decoder_width));
  time_out_bias_ = layout_.add("decoder.time.out.bias", {decoder_width}, 0);
  // Adaptive norm (adaLN-zero): scale, shift and gate from the time embedding, zero at first so that each block starts
  // as the identity.
  modulation_ = layout_.add("decoder.modulation.weight", {6 * decoder_width, decoder_width}, 0);
  modulation_bias_ = layout_.add("decoder.modulation.bias", {6 * decoder_width}, 0);
  for (int64_t i = 0; i < spec.size.decoder_blocks; ++i) {
    const std::string name = "decoder.blocks." + std::to_string(i);
    decoder_.push_back(add_block(name, decoder_width, 1, true));
    tables_.push_back(layout_.add(name + ".modulation", {6, decoder_width}, 0));
  }
  final_modulation_ = layout_.add("decoder.final.modulation.weight", {2 * decoder_width, decoder_width}, 0);
  final_modulation_bias_ = layout_.add("decoder.final.modulation.bias", {2 * decoder_width}, 0);
  decoder_out_ = layout_.add("decoder.out.weight", {spec.n_mels, decoder_width}, 0);
  decoder_out_bias_ = layout_.add("decoder.out.bias", {spec.n_mels}, 0);
  if (spec.conditioned()) add_condition();
  layout_.arrange();
}

void Voice::add_condition() {
  const auto fan_in = [](int64_t inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); };
  constexpr int64_t width = condition_width, hidden = reference_factor * width;
  speaker_table_ = layout_.add("speakers.table", {spec_.speakers, condition_width}, 1);
  language_table_ = layout_.add("languages.table", {std::max<int64_t>(1, spec_.languages), condition_width}, 1);
  const int64_t inputs = reference_window * spec_.n_mels;
  reference_in_ = layout_.add("reference.in.weight", {width, inputs}, fan_in(inputs));
  reference_.norm = layout_.add("reference.feed.norm", {width}, 0, 1);
  reference_.in = layout_.add_to_trunk("reference.feed.in", {hidden, width}, fan_in(width));
  reference_.out = layout_.add_to_trunk("reference.feed.out", {width, hidden}, fan_in(hidden) / 2);
  reference_norm_ = layout_.add("reference.norm", {width}, 0, 1);
  const double init_std = fan_in(condition_width);
  const int64_t widths = 2 * spec_.size.encoder_width + spec_.size.decoder_width;
  condition_ = layout_.add("condition.weight", {widths, condition_width}, init_std);
}

Trunk Voice::trunk_of(const Weights& weights, const std::vector<Block>& blocks, bool modulated) const {
  Trunk trunk;
  trunk.overwrite_gradients = weights.overwrite_trunk_gradients;
  trunk.gradient_ready = weights.gradient_ready;
  for (const Block& block : blocks) {
    trunk.blocks.push_back({weights[block.attention_in], weights[block.attention_out], weights[block.ffn_in],
                            weights[block.ffn_out], modulated ? at::Tensor() : weights[block.attention_norm],
                            modulated ? at::Tensor() : weights[block.ffn_norm],
                            modulated && spec_.convolutions ? weights[block.depthwise] : at::Tensor()});
  }
  return trunk;
}

at::Tensor Voice::run(const Trunk& trunk, const at::Tensor& x, const at::Tensor& lengths,
                      const Inspect& inspect) const {
  const bool fused = uses_fused(x) && !inspect;
  const RowMask mask = make_row_mask(lengths, x.size(1), x.scalar_type(), fused);
  return fused ? run_trunk_fused(trunk, x, mask) : run_trunk(trunk, x, mask, inspect);
}

// Two convolutions with a norm each; in voices of version 0.1 one linear layer.
at::Tensor Voice::predict_durations(const Weights& weights, const at::Tensor& encoded, const at::Tensor& lengths,
                                    const Pass& pass) const {
  const DropoutKey stronger{pass.dropout.key, std::min(duration_dropout * pass.dropout.rate, max_duration_dropout),
                            pass.dropout.rows};
  at::Tensor hidden = encoded;
  if (spec_.conditioned()) hidden = hidden + pass.condition.duration.unsqueeze(1);
  for (size_t i = 0; i < duration_.size(); ++i) {
    const DurationLayer& layer = duration_[i];
    const at::Tensor& weight = weights[layer.weight];
    const int64_t width = hidden.size(2), kernel = weight.size(1) / width;
    const bool fused = uses_fused(hidden) && !pass.inspect && kernel > 1;
    const at::Tensor near = (fused ? unfold_positions_fused : unfold_positions)(hidden, lengths, kernel);
    hidden = at::silu(at::linear(near, weight, weights[layer.bias]));
    if (!spec_.convolutions) continue;
    constexpr double eps = 1e-6;
    hidden = dropout(at::rms_norm(hidden, {width}, weights[layer.norm], eps), stronger,
                     duration_site + static_cast<uint32_t>(i));
  }
  return at::linear(hidden, weights[duration_out_], weights[duration_out_bias_]).squeeze(-1).to(at::kFloat);
}

Voice::Encoded Voice::encode(const Weights& weights, const at::Tensor& tokens, const at::Tensor& lengths,
                             const Pass& pass) const {
  const Inspect& inspect = pass.inspect;
  const at::ScalarType type = weights[embedding_].scalar_type();
  // A one-hot product instead of a lookup, because its gradient is a deterministic product too.
  const at::Tensor one_hot = (tokens.unsqueeze(-1) == at::arange(spec_.vocabulary, tokens.options())).to(type);
  Trunk trunk = trunk_of(weights, encoder_, false);
  trunk.name = "encoder";
  trunk.norm = weights[encoder_norm_];
  trunk.dropout = pass.dropout, trunk.first_site = encoder_site;
  at::Tensor embedded = dropout(at::matmul(one_hot, weights[embedding_]), pass.dropout, embedding_site);
  if (spec_.conditioned()) embedded = embedded + pass.condition.encoder.unsqueeze(1);
  const at::Tensor x = run(trunk, embedded, lengths, inspect);
  Encoded encoded;
  encoded.mu = at::linear(x, weights[mu_weight_], weights[mu_bias_]).to(at::kFloat);
  encoded.log_durations = predict_durations(weights, x.detach(), lengths, pass);
  if (inspect) inspect("encoder.mu", encoded.mu), inspect("duration", encoded.log_durations);
  return encoded;
}

at::Tensor Voice::decode(const Weights& weights, const at::Tensor& input, const at::Tensor& time,
                         const at::Tensor& lengths, const Pass& pass) const {
  const Inspect& inspect = pass.inspect;
  const at::ScalarType type = weights[decoder_in_].scalar_type();
  const int64_t rows = input.size(0), width = spec_.size.decoder_width;
  const at::Tensor sinusoids = time_embedding(time, time_embedding_width).to(type);
  at::Tensor hidden = at::linear(at::silu(at::linear(sinusoids, weights[time_in_], weights[time_in_bias_])),
                                 weights[time_out_], weights[time_out_bias_]);
  if (spec_.conditioned()) hidden = hidden + pass.condition.decoder;
  const at::Tensor condition = at::silu(hidden);
  Trunk trunk = trunk_of(weights, decoder_, true);
  trunk.name = "decoder";
  trunk.dropout = pass.dropout, trunk.first_site = decoder_site;
  std::vector<at::Tensor> tables;
  for (const size_t table : tables_) tables.push_back(weights[table]);
  trunk.modulation = at::linear(condition, weights[modulation_], weights[modulation_bias_]).view({rows, 6, width}) +
                     at::stack(tables).unsqueeze(1);
  trunk.final_modulation =
      at::linear(condition, weights[final_modulation_], weights[final_modulation_bias_]).view({rows, 2, width});
  const at::Tensor x = at::linear(input.to(type), weights[decoder_in_], weights[decoder_in_bias_]);
  if (inspect) inspect("decoder.in", x), inspect("decoder.modulation", trunk.modulation);
  at::Tensor flow = at::linear(run(trunk, x, lengths, inspect), weights[decoder_out_], weights[decoder_out_bias_]);
  if (inspect) inspect("decoder.out", flow);
  return flow;
}

const std::vector<std::string>& Voice::loss_names() {
  static const std::vector<std::string> names = {"prior", "duration", "flow"};
  return names;
}

const at::Tensor& VoiceLosses::operator[](std::string_view name) const {
  const std::vector<std::string>& names = Voice::loss_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail("voice", "there is no loss '{}'", name);
  return terms[static_cast<size_t>(found - names.begin())];
}

VoiceLosses Voice::losses(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                          const Inspect& inspect) const {
  if (inspect) inspect("mel", batch.mel);
  const at::Tensor mel = (batch.mel - spec_.mel_mean) / spec_.mel_std;
  // Of the whole batch, if these rows are a part of it: so the losses of all parts add up.
  const auto of_whole = [](const at::Tensor& whole, const at::Tensor& lengths) {
    return (whole.defined() ? whole : lengths.sum()).clamp_min(1).to(at::kFloat);
  };
  const at::Tensor valid_values = of_whole(batch.whole_frames, batch.mel_lengths) * spec_.n_mels;
  const at::Tensor valid_tokens = of_whole(batch.whole_tokens, batch.text_lengths);

  const Pass pass{condition_of(weights, batch, noise, inspect), noise.dropout, inspect};
  const Encoded encoded = encode(weights, batch.tokens, batch.text_lengths, pass);
  VoiceLosses losses;
  losses.mu = encoded.mu.detach();
  const Alignment alignment = align_frames(mel, losses.mu, batch.text_lengths, batch.mel_lengths);
  losses.token_of_frame = alignment.token_of_frame;
  const at::Tensor token = at::arange(batch.tokens.size(1), batch.tokens.options());
  const at::Tensor log_durations = alignment.durations.clamp_min(1).to(at::kFloat).log();
  const at::Tensor duration =
      masked_sum((encoded.log_durations - log_durations).square(), token < batch.text_lengths.unsqueeze(1)) /
      valid_tokens;

  at::Tensor prior_squares, flow_error;
  if (uses_fused(weights.flat) && !inspect) {
    const FlowFrames frames{mel, noise.noise, noise.time, losses.token_of_frame, sigma_min};
    const DecoderInput input = decoder_input(frames, encoded.mu);
    prior_squares = input.squares;
    flow_error = flow_squared_error(frames, decode(weights, input.input, noise.time, batch.mel_lengths, pass));
  } else {
    const at::Tensor valid = (losses.token_of_frame >= 0).unsqueeze(-1);
    const at::Tensor path = losses.token_of_frame.unsqueeze(-1) == token;
    const at::Tensor frame_mu = at::bmm(path.to(at::kFloat), encoded.mu);
    prior_squares = masked_sum((mel - frame_mu).square(), valid);
    const at::Tensor time = noise.time.view({-1, 1, 1});
    const at::Tensor x = (1 - (1 - sigma_min) * time) * noise.noise + time * mel;
    const at::Tensor target = mel - (1 - sigma_min) * noise.noise;
    const at::Tensor flow = decode(weights, at::cat({x, frame_mu}, -1), noise.time, batch.mel_lengths, pass);
    flow_error = masked_sum((flow.to(at::kFloat) - target).square(), valid);
  }
  at::Tensor prior = 0.5 * (prior_squares / valid_values + std::log(2 * std::numbers::pi));
  if (batch.whole_frames.defined()) {
    const at::Tensor share = batch.mel_lengths.sum() * spec_.n_mels / valid_values;
    prior = 0.5 * (prior_squares / valid_values + share * std::log(2 * std::numbers::pi));
  }
  losses.terms = {prior, duration, flow_error / valid_values};  // in the order of loss_names()
  if (losses.terms.size() != loss_names().size()) fail("voice", "each loss needs a name and a term");
  losses.total = losses.terms.front();
  for (size_t i = 1; i < losses.terms.size(); ++i) losses.total = losses.total + losses.terms[i];
  return losses;
}

at::Tensor Voice::encode_references(const Weights& weights, const at::Tensor& mel, const at::Tensor& windows,
                                    const DropoutKey& dropout_key, const Inspect& inspect) const {
  // (mel - mean) / std in one kernel, straight into the type of the weights.
  at::Tensor normalised = at::empty(mel.sizes(), mel.options().dtype(weights[reference_in_].scalar_type()));
  at::add_out(normalised, at::scalar_tensor(-spec_.mel_mean / spec_.mel_std), mel, 1 / spec_.mel_std);
  Trunk trunk;
  trunk.overwrite_gradients = weights.overwrite_trunk_gradients;
  trunk.gradient_ready = weights.gradient_ready;
  Trunk::Block& block = trunk.blocks.emplace_back();
  block.ffn_norm = weights[reference_.norm], block.ffn_in = weights[reference_.in];
  block.ffn_out = weights[reference_.out];
  trunk.name = "reference";
  trunk.norm = weights[reference_norm_];
  trunk.dropout = dropout_key, trunk.first_site = reference_site;
  RowMask mask;  // without attention nothing else is needed of it
  const at::Tensor in = at::linear(normalised.unfold(1, reference_window, 1).flatten(2), weights[reference_in_]);
  mask.positions = in.size(1), mask.row_lengths = windows;
  return uses_fused(in) && !inspect ? run_trunk_fused(trunk, in, mask) : run_trunk(trunk, in, mask, inspect);
}

at::Tensor Voice::language_vectors(const Weights& weights, const at::Tensor& languages) const {
  return unit_rows(rows_of(weights[language_table_], languages));
}

Voice::Condition Voice::condition_from(const Weights& weights, const at::Tensor& vectors) const {
  const int64_t encoder = spec_.size.encoder_width, decoder = spec_.size.decoder_width;
  const std::vector<at::Tensor> parts =
      at::linear(vectors, weights[condition_]).split_with_sizes({encoder, encoder, decoder}, 1);
  return {parts[0], parts[1], parts[2]};
}

Voice::Condition Voice::condition_of(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                                     const Inspect& inspect) const {
  if (!spec_.conditioned()) return {};
  const at::Tensor windows = batch.reference_lengths - (reference_window - 1);
  const at::Tensor references = encode_references(weights, batch.reference, windows, noise.dropout, inspect);
  const at::Tensor condition = choose_condition({weights[speaker_table_], weights[language_table_], references, windows,
                                                 batch.speaker, batch.language, noise.kept, noise.condition_dropout},
                                                uses_fused(weights.flat) && !inspect);
  if (inspect) inspect("condition", condition);
  return condition_from(weights, condition);
}

at::Tensor Voice::speaker_vector(const Weights& weights, int64_t speaker) const {
  const at::NoGradGuard no_gradients;
  return unit_rows(weights[speaker_table_][speaker]).to(at::kFloat).cpu();
}

at::Tensor Voice::reference_vector(const Weights& weights, const at::Tensor& mel) const {
  const at::NoGradGuard no_gradients;
  const at::Device device = weights.flat.device();
  const at::Tensor windows =
      at::full({1}, mel.size(0) - (reference_window - 1), at::TensorOptions(at::kInt).device(device));
  const at::Tensor references = encode_references(weights, mel.unsqueeze(0).to(device), windows, {}, {});
  return pool_frames(references, windows)[0].to(at::kFloat).cpu();
}

at::Tensor Voice::speak(const Weights& weights, const at::Tensor& noise, const at::Tensor& frame_mu,
                        const at::Tensor& lengths, const Condition& condition, const at::Tensor& guidance,
                        const SynthesisOptions& options) const {
  return solve_flow(noise * options.temperature, options, [&](const at::Tensor& x, double time) {
    const at::Tensor times = at::full({frame_mu.size(0)}, time, x.options());
    const int64_t copies = frame_mu.size(0) / x.size(0);
    at::Tensor flow = decode(weights, at::cat({copies == 1 ? x : x.repeat({copies, 1, 1}), frame_mu}, -1), times,
                             lengths, {condition})
                          .to(at::kFloat);
    if (copies == 1) return flow;
    const std::vector<at::Tensor> halves = flow.chunk(2);
    return halves[0] + guidance * (halves[0] - halves[1]);
  });
}

at::Tensor Voice::teacher_forced(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                                 const SynthesisOptions& options) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor mel = (batch.mel - spec_.mel_mean) / spec_.mel_std;
  const Condition condition = condition_of(weights, batch, noise, {});
  const at::Tensor mu = encode(weights, batch.tokens, batch.text_lengths, {condition}).mu;
  const at::Tensor token = align_frames(mel, mu, batch.text_lengths, batch.mel_lengths).token_of_frame.unsqueeze(-1);
  const at::Tensor path = token == at::arange(batch.tokens.size(1), batch.tokens.options());
  const at::Tensor spoken =
      speak(weights, noise.noise, at::bmm(path.to(at::kFloat), mu), batch.mel_lengths, condition, {}, options);
  return spoken * spec_.mel_std + spec_.mel_mean;
}

MelDistances Voice::mel_distances(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                                  const SynthesisOptions& options) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor difference = teacher_forced(weights, batch, noise, options) - batch.mel;
  const at::Tensor valid =
      (at::arange(batch.mel.size(1), batch.mel_lengths.options()) < batch.mel_lengths.unsqueeze(1)).unsqueeze(2);
  const at::Tensor valid_frames =
      (batch.whole_frames.defined() ? batch.whole_frames : batch.mel_lengths.sum()).clamp_min(1);
  // Amplitudes are c0 + sum of c_k cos(k w) over the bands, so that distances of cepstra are in dB as usual.
  constexpr int64_t coefficients = 13;
  const auto bands = static_cast<double>(spec_.n_mels);
  const at::Tensor band = at::arange(spec_.n_mels, batch.mel.options()),
                   k = at::arange(1, coefficients + 1, band.options());
  const at::Tensor basis = ((band + 0.5).unsqueeze(1) * k * (std::numbers::pi / bands)).cos() * (2 / bands);
  const at::Tensor length =
      (2 * at::matmul(difference, basis).square().sum(-1, true)).sqrt() * (10 / std::numbers::ln10);
  return {masked_sum(difference.abs(), valid) / (valid_frames * spec_.n_mels),
          masked_sum(length, valid) / valid_frames};
}

namespace {

void check_sentence(int64_t count, const char* of_what) {
  if (count <= max_sentence) return;
  reject_input("synth", "a sentence of the text has {} {}, more than {}", count, of_what, max_sentence,
               way_out("make shorter sentences of it, or speak faster"));
}

}  // namespace

std::vector<int64_t> frames_of_tokens(const at::Tensor& log_durations, double speed) {
  const at::Tensor frames =
      (log_durations.exp() / speed).round().nan_to_num(1).clamp(1, max_frames_per_token).to(at::kLong).contiguous();
  check_sentence(frames.sum().item<int64_t>(), "frames");
  return {frames.const_data_ptr<int64_t>(), frames.const_data_ptr<int64_t>() + frames.numel()};
}

EncodedText Voice::encode_text(const Weights& weights, const at::Tensor& tokens, const at::Tensor& length,
                               const at::Tensor& vector, const at::Tensor& language, bool guided) const {
  check_sentence(tokens.size(1), "tokens");
  const at::NoGradGuard no_gradients;
  Condition condition;
  if (spec_.conditioned()) {
    const at::Tensor own = vector.to(weights.flat.scalar_type()) + language_vectors(weights, language);
    condition = condition_from(weights, guided ? at::cat({own, at::zeros_like(own)}) : own);
  }
  const int64_t rows = guided && spec_.conditioned() ? 2 : 1;
  const Encoded encoded = encode(weights, tokens.repeat({rows, 1}), length.repeat({rows}), {condition});
  return {encoded.mu, encoded.log_durations, condition.decoder};
}

at::Tensor Voice::speak_text(const Weights& weights, const at::Tensor& noise, const at::Tensor& frame_mu,
                             const at::Tensor& length, const at::Tensor& condition, const at::Tensor& guidance,
                             const SynthesisOptions& options) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor lengths = length.repeat({frame_mu.size(0)});
  return speak(weights, noise, frame_mu, lengths, {{}, {}, condition}, guidance, options) * spec_.mel_std +
         spec_.mel_mean;
}

SynthesizedMel Voice::synthesize(const Weights& weights, const std::vector<int64_t>& tokens,
                                 const SynthesisOptions& options, const SpeakingAs& speaker) const {
  const at::NoGradGuard no_gradients;
  if (tokens.empty()) return {at::zeros({0, spec_.n_mels})};
  const at::Device device = weights.flat.device();
  const auto ints = at::TensorOptions().dtype(at::kInt);
  const auto one = [&](int64_t value) { return at::full({1}, value, ints).to(device); };
  at::Tensor vector;
  if (spec_.conditioned()) vector = speaker.vector.to(device).unsqueeze(0);
  const EncodedText text =
      encode_text(weights, at::tensor(tokens, ints).unsqueeze(0).to(device), one(static_cast<int64_t>(tokens.size())),
                  vector, one(speaker.language), options.guidance != 0);
  SynthesizedMel result;
  result.durations = frames_of_tokens(text.log_durations[0].cpu(), options.speed);
  const at::Tensor mu = text.mu.repeat_interleave(at::tensor(result.durations).to(device), 1);
  const int64_t frames = mu.size(1);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const at::Tensor noise = at::randn({1, frames, spec_.n_mels}, generator).to(device);
  const at::Tensor guidance = at::scalar_tensor(options.guidance, noise.options());
  result.mel = speak_text(weights, noise, mu, one(frames), text.condition, guidance, options)[0].cpu().contiguous();
  return result;
}

}  // namespace myxtts
