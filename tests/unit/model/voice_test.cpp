#include "model/voice.h"

#include "base/random.h"
#include "model/alignment.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

constexpr ModelSize small_size{"test", 2, 64, 2, 64};

VoiceSpec test_spec() {
  VoiceSpec spec;
  spec.size = small_size;
  spec.vocabulary = 20;
  spec.n_mels = 16;
  spec.mel_mean = -5;
  spec.mel_std = 2;
  return spec;
}

struct Example {
  VoiceBatch batch;
  FlowNoise noise;
};

// Random rows of these lengths, padded to a shape; valid values do not depend on the shape.
Example make_example(const std::vector<std::pair<int, int>>& lengths, int64_t text, int64_t frames, int64_t n_mels) {
  Example example;
  const auto rows = static_cast<int64_t>(lengths.size());
  example.batch.tokens = at::zeros({rows, text}, at::kInt);
  example.batch.mel = at::zeros({rows, frames, n_mels});
  example.batch.text_lengths = at::zeros({rows}, at::kInt);
  example.batch.mel_lengths = at::zeros({rows}, at::kInt);
  example.noise.noise = at::zeros({rows, frames, n_mels});
  example.noise.time = at::zeros({rows});
  for (int64_t row = 0; row < rows; ++row) {
    Random random(static_cast<uint64_t>(row) + 1);
    const auto [tokens, mel_frames] = lengths[static_cast<size_t>(row)];
    example.batch.text_lengths[row] = tokens;
    example.batch.mel_lengths[row] = mel_frames;
    for (int t = 0; t < tokens; ++t) example.batch.tokens[row][t] = static_cast<int>(2 + random.below(18));
    at::Tensor mel = example.batch.mel[row], noise = example.noise.noise[row];
    for (int f = 0; f < mel_frames; ++f) {
      for (int m = 0; m < n_mels; ++m) {
        mel[f][m] = -5 + 2 * random.normal();
        noise[f][m] = random.normal();
      }
    }
    example.noise.time[row] = random.uniform();
  }
  return example;
}

// Perturbs all parameters, so that no gradient is zero because of a zero gate.
at::Tensor perturbed(const Voice& voice) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
  at::Tensor flat = voice.layout().initial(1);
  return flat + 0.05 * at::randn(flat.sizes(), generator);
}

TEST(Voice, padding_changes_neither_loss_nor_gradients) {
  const Voice voice(test_spec());
  const std::vector<std::pair<int, int>> lengths = {{5, 23}, {9, 30}, {1, 1}, {0, 0}, {16, 16}};
  std::vector<at::Tensor> gradients, losses;
  for (const int64_t times : {1, 2, 3}) {
    const Example example = make_example(lengths, 16 * times, 32 * times, 16);
    const Weights weights = make_weights(voice.layout(), perturbed(voice), true);
    const VoiceLosses result = voice.losses(weights, example.batch, example.noise);
    result.total.backward();
    losses.push_back(result.total.detach());
    gradients.push_back(weights.gradients);
    EXPECT_TRUE(std::isfinite(result.total.item<float>()));
    EXPECT_EQ(result.token_of_frame.narrow(0, 3, 1).max().item<int>(), -1);
  }
  for (size_t i = 1; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i].item<float>(), losses[0].item<float>(), 2e-6 * std::abs(losses[0].item<float>()));
    const double difference = (gradients[i] - gradients[0]).norm().item<double>() / gradients[0].norm().item<double>();
    EXPECT_LT(difference, 2e-6);
  }
}

// Dropout of a step; its key lives on the CPU.
DropoutKey dropout_key(int64_t key, double rate) { return {at::full({}, key, at::kLong), rate}; }

TEST(Voice, dropout_is_the_same_for_every_padding_and_for_plain_and_fused_operations) {
  const std::vector<std::pair<int, int>> lengths = {{5, 23}, {9, 30}, {1, 1}, {0, 0}, {16, 16}};
  std::vector<at::Tensor> gradients, losses;
  for (const bool fused : {true, false}) {
    for (const int64_t times : {1, 2}) {
      const Voice voice(test_spec(), fused);
      Example example = make_example(lengths, 16 * times, 32 * times, 16);
      example.noise.dropout = dropout_key(42, 0.2);
      const Weights weights = make_weights(voice.layout(), perturbed(voice), true);
      const VoiceLosses result = voice.losses(weights, example.batch, example.noise);
      result.total.backward();
      losses.push_back(result.total.detach());
      gradients.push_back(weights.gradients);
    }
  }
  for (size_t i = 1; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i].item<float>(), losses[0].item<float>(), 5e-6 * std::abs(losses[0].item<float>()));
    EXPECT_LT((gradients[i] - gradients[0]).norm().item<double>() / gradients[0].norm().item<double>(), 1e-5);
  }
}

TEST(Voice, dropout_changes_with_its_key_and_is_off_without_one) {
  const Voice voice(test_spec());
  Example example = make_example({{5, 23}, {9, 30}}, 16, 32, 16);
  const Weights weights = make_weights(voice.layout(), perturbed(voice), false);
  const auto loss = [&](const DropoutKey& dropout) {
    example.noise.dropout = dropout;
    return voice.losses(weights, example.batch, example.noise).total.item<float>();
  };
  EXPECT_EQ(loss(dropout_key(1, 0.1)), loss(dropout_key(1, 0.1)));
  EXPECT_NE(loss(dropout_key(1, 0.1)), loss(dropout_key(2, 0.1)));
  EXPECT_NE(loss(dropout_key(1, 0.1)), loss({}));
  EXPECT_EQ(loss(dropout_key(1, 0)), loss({}));
}

TEST(Voice, mel_distance_ignores_padding_and_is_small_for_what_the_voice_says) {
  const Voice voice(test_spec());
  const std::vector<std::pair<int, int>> lengths = {{5, 23}, {9, 30}, {0, 0}};
  const Weights weights = make_weights(voice.layout(), perturbed(voice), false);
  std::vector<double> distances;
  for (const int64_t times : {1, 2}) {
    const Example example = make_example(lengths, 16 * times, 32 * times, 16);
    distances.push_back(voice.mel_distances(weights, example.batch, example.noise, {}).mel.item<double>());
  }
  EXPECT_NEAR(distances[1], distances[0], 1e-5 * distances[0]);

  // What it says itself, aligned as it said it, is nearer to it than noise is.
  SynthesisOptions options;
  options.temperature = 0;
  const std::vector<int64_t> tokens = {3, 4, 5, 6, 7};
  const SynthesizedMel said = voice.synthesize(weights, tokens, options);
  Example own = make_example({{5, static_cast<int>(said.mel.size(0))}}, 5, said.mel.size(0), 16);
  own.batch.tokens = at::tensor(tokens, at::kInt).unsqueeze(0);
  const double from_noise = voice.mel_distances(weights, own.batch, own.noise, options).mel.item<double>();
  own.batch.mel = said.mel.unsqueeze(0);
  EXPECT_LT(voice.mel_distances(weights, own.batch, own.noise, options).mel.item<double>(), from_noise / 2);
}

TEST(Voice, those_of_version_0_1_have_no_convolutions) {
  VoiceSpec spec = test_spec();
  spec.convolutions = false;
  const Voice before(spec), now(test_spec());
  EXPECT_LT(before.layout().parameters(), now.layout().parameters());
  std::set<std::string> names;
  for (const ParameterSpec& parameter : before.layout().specs()) names.insert(parameter.name);
  EXPECT_TRUE(names.contains("duration.in.weight"));
  EXPECT_FALSE(names.contains("decoder.blocks.0.feed.depthwise"));
}

VoiceSpec conditioned_spec() {
  VoiceSpec spec = test_spec();
  spec.speakers = 3, spec.languages = 2;
  return spec;
}

// Speakers, languages and references for the rows, the first half. The second row's cannot be used; the last row's
// speaker is unknown.
void add_condition(Example& example, int64_t frames) {
  const int64_t rows = example.batch.tokens.size(0), heard = (rows + 1) / 2, n_mels = example.batch.mel.size(2);
  example.batch.speaker = at::arange(rows, at::kInt) % 3;
  example.batch.speaker[rows - 1] = -1;
  example.batch.language = at::arange(rows, at::kInt) % 2;
  example.batch.reference_lengths = 7 + at::arange(heard, at::kInt);
  if (heard > 1) example.batch.reference_lengths[1] = 0;
  example.batch.reference = at::zeros({heard, frames, n_mels});
  example.noise.kept = at::full({rows}, 0.9);
  for (int64_t row = 0; row < heard; ++row) {
    Random random(static_cast<uint64_t>(row) + 100);
    for (int f = 0; f < example.batch.reference_lengths[row].item<int>(); ++f) {
      for (int m = 0; m < n_mels; ++m) example.batch.reference[row][f][m] = -5 + 2 * random.normal();
    }
  }
}

TEST(Voice, padding_of_references_changes_nothing_and_every_condition_has_a_gradient) {
  const std::vector<std::pair<int, int>> lengths = {{5, 23}, {9, 30}, {4, 12}, {6, 20}, {7, 21}};
  std::vector<at::Tensor> gradients, losses;
  for (const bool fused : {true, false}) {
    const Voice voice(conditioned_spec(), fused);
    for (const int64_t times : {1, 2}) {
      Example example = make_example(lengths, 16 * times, 32 * times, 16);
      add_condition(example, 16 * times);
      example.noise.dropout = dropout_key(42, 0.2);
      const Weights weights = make_weights(voice.layout(), perturbed(voice), true);
      const VoiceLosses result = voice.losses(weights, example.batch, example.noise);
      result.total.backward();
      losses.push_back(result.total.detach());
      gradients.push_back(weights.gradients);
    }
    const std::vector<at::Tensor> views = voice.layout().views(gradients.back());
    for (size_t i = 0; i < views.size(); ++i) {
      EXPECT_GT(views[i].norm().item<float>(), 0) << voice.layout().specs()[i].name;
    }
  }
  for (size_t i = 1; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i].item<float>(), losses[0].item<float>(), 5e-6 * std::abs(losses[0].item<float>()));
    EXPECT_LT((gradients[i] - gradients[0]).norm().item<double>() / gradients[0].norm().item<double>(), 2e-5);
  }
}

TEST(Voice, a_row_without_condition_does_not_know_its_speaker) {
  const Voice voice(conditioned_spec());
  const Weights weights = make_weights(voice.layout(), perturbed(voice), false);
  Example example = make_example({{5, 23}, {9, 30}}, 16, 32, 16);
  add_condition(example, 16);
  const auto loss = [&](int speaker, double dropped) {
    example.batch.speaker = at::full({2}, speaker, at::kInt), example.batch.reference_lengths.zero_();
    example.noise.condition_dropout = dropped;
    return voice.losses(weights, example.batch, example.noise).total.item<float>();
  };
  EXPECT_NE(loss(0, 0), loss(1, 0));
  EXPECT_EQ(loss(0, 0.95), loss(1, 0.95));
  EXPECT_NE(loss(0, 0.95), loss(0, 0));
}

TEST(Voice, speaks_as_a_speaker_as_a_reference_and_with_guidance) {
  const Voice voice(conditioned_spec());
  const Weights weights = make_weights(voice.layout(), perturbed(voice), false);
  const auto mel = [&](const at::Tensor& vector, int64_t language, double guidance) {
    SynthesisOptions options;
    options.guidance = guidance;
    return voice.synthesize(weights, {2, 3, 4, 5}, options, {vector, language}).mel;
  };
  const at::Tensor one = voice.speaker_vector(weights, 0), other = voice.speaker_vector(weights, 1);
  EXPECT_NEAR(one.square().mean().item<double>(), 1, 1e-3);
  const at::Tensor heard = voice.reference_vector(weights, at::randn({20, 16}));
  EXPECT_NEAR(heard.square().mean().item<double>(), 1, 1e-3);
  EXPECT_TRUE(mel(one, 0, 0).equal(mel(one, 0, 0)));
  for (const at::Tensor& differs :
       {mel(other, 0, 0), mel(one, 1, 0), mel(one, -1, 0), mel(heard, 0, 0), mel(one, 0, 1)}) {
    EXPECT_FALSE(differs.equal(mel(one, 0, 0)));
  }
  // Guidance changes how it sounds, not how long it takes.
  EXPECT_EQ(mel(one, 0, 2).size(0), mel(one, 0, 0).size(0));
}

TEST(Voice, every_parameter_gets_a_gradient) {
  const Voice voice(test_spec());
  const Example example = make_example({{5, 23}, {9, 30}}, 16, 32, 16);
  const Weights weights = make_weights(voice.layout(), perturbed(voice), true);
  voice.losses(weights, example.batch, example.noise).total.backward();
  const std::vector<at::Tensor> gradients = voice.layout().views(weights.gradients);
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_GT(gradients[i].norm().item<float>(), 0) << voice.layout().specs()[i].name;
  }
}

TEST(Voice, starts_the_same_for_the_same_seed) {
  const Voice voice(test_spec());
  EXPECT_TRUE(voice.layout().initial(3).equal(voice.layout().initial(3)));
  EXPECT_FALSE(voice.layout().initial(3).equal(voice.layout().initial(4)));
}

TEST(Voice, sizes_have_the_documented_number_of_parameters) {
  const std::vector<std::pair<std::string, double>> expected = {
      {"tiny", 8.8}, {"small", 23.5}, {"normal", 71.5}, {"big", 190.5}};
  for (const auto& [name, millions] : expected) {
    VoiceSpec spec;
    spec.size = model_size(name);
    spec.vocabulary = 60;
    spec.n_mels = 80;
    EXPECT_NEAR(static_cast<double>(Voice(spec).layout().parameters()) / 1e6, millions, 0.01 * millions) << name;
  }
}

TEST(Voice, synthesizes_any_text_and_follows_speed_and_seed) {
  const Voice voice(test_spec());
  const Weights weights = make_weights(voice.layout(), perturbed(voice), false);
  const SynthesizedMel once = voice.synthesize(weights, {2, 3, 4, 5}, {});
  EXPECT_EQ(once.durations.size(), 4U);
  EXPECT_EQ(once.mel.size(1), 16);
  EXPECT_TRUE(once.mel.equal(voice.synthesize(weights, {2, 3, 4, 5}, {}).mel));
  EXPECT_FALSE(once.mel.equal(voice.synthesize(weights, {2, 3, 4, 5}, {.seed = 2}).mel));
  EXPECT_GT(voice.synthesize(weights, {2, 3, 4, 5}, {.speed = 0.2}).mel.size(0), once.mel.size(0));
  EXPECT_EQ(voice.synthesize(weights, {}, {}).mel.size(0), 0);
}

// Sum of the scores along a path.
double path_score(const std::vector<float>& scores, int64_t tokens, const std::vector<int>& path) {
  double sum = 0;
  for (size_t frame = 0; frame < path.size(); ++frame)
    sum += scores[frame * static_cast<size_t>(tokens) + static_cast<size_t>(path[frame])];
  return sum;
}

// Best score of all monotonic paths, by exhaustive search.
double best_path_score(const std::vector<float>& scores, int tokens, int frames, std::vector<int>& path) {
  if (static_cast<int>(path.size()) == frames)
    return path.back() == tokens - 1 ? path_score(scores, tokens, path) : -1e300;
  double best = -1e300;
  for (const int next : path.empty() ? std::vector<int>{0} : std::vector<int>{path.back(), path.back() + 1}) {
    if (next >= tokens) continue;
    path.push_back(next);
    best = std::max(best, best_path_score(scores, tokens, frames, path));
    path.pop_back();
  }
  return best;
}

TEST(Alignment, is_the_best_of_all_monotonic_paths) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const int frames = 1 + static_cast<int>(random.below(9)),
              tokens = 1 + static_cast<int>(random.below(static_cast<uint64_t>(frames)));
    std::vector<float> scores(static_cast<size_t>(frames * tokens));
    for (float& score : scores) score = static_cast<float>(random.normal());
    const int32_t text_length = tokens, mel_length = frames;
    std::vector<int32_t> found(static_cast<size_t>(frames)), durations(static_cast<size_t>(tokens));
    align_on_cpu({1, tokens, frames, scores.data(), &text_length, &mel_length, found.data(), durations.data()}, 0);
    const std::vector<int> path(found.begin(), found.end());
    EXPECT_EQ(path.front(), 0);
    EXPECT_EQ(path.back(), tokens - 1);
    for (size_t i = 1; i < path.size(); ++i) EXPECT_LE(static_cast<unsigned>(path[i] - path[i - 1]), 1U);
    for (int token = 0; token < tokens; ++token) {
      EXPECT_EQ(durations[static_cast<size_t>(token)], std::ranges::count(path, token));
    }
    std::vector<int> none;
    EXPECT_NEAR(path_score(scores, tokens, path), best_path_score(scores, tokens, frames, none), 1e-5);
  }
}

TEST(Voice, overwrites_trunk_gradients_and_accumulates_all_others) {
  const Voice voice(test_spec());
  const Example example = make_example({{5, 23}, {9, 30}}, 16, 32, 16);
  Weights weights = make_weights(voice.layout(), perturbed(voice), true);
  weights.overwrite_trunk_gradients = true;
  const auto add = [&] { add_gradients(voice.losses(weights, example.batch, example.noise).total, weights); };
  add();
  const at::Tensor once = weights.gradients.clone();
  add();
  const int64_t trunks = voice.layout().trunk_elements(), others = voice.layout().elements() - trunks;
  EXPECT_GT(once.narrow(0, 0, trunks).abs().max().item<float>(), 0);
  EXPECT_TRUE(weights.gradients.narrow(0, 0, trunks).equal(once.narrow(0, 0, trunks)));
  EXPECT_TRUE(weights.gradients.narrow(0, trunks, others).allclose(2 * once.narrow(0, trunks, others)));
  for (const ParameterSpec& spec : voice.layout().specs()) EXPECT_EQ(spec.in_trunk, spec.first < trunks) << spec.name;
}

// Checks that a path uses only tokens of the row and matches the durations.
void expect_valid_path(const at::Tensor& token_of_frame, const at::Tensor& durations) {
  const auto tokens = durations.size(0);
  EXPECT_GE(token_of_frame.min().item<int>(), 0);
  EXPECT_LT(token_of_frame.max().item<int>(), tokens);
  EXPECT_TRUE(at::bincount(token_of_frame, {}, tokens).equal(durations.to(at::kLong)));
}

// Scores with one or two non-finite frames; an infinite mel gives an infinity of either sign per token.
at::Tensor broken_scores(int64_t rows, int64_t frames, int64_t tokens) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  at::Tensor scores = at::randn({rows, frames, tokens}, generator);
  Random random(4);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t hits = 1 + row % 2; hits > 0; --hits) {
      const auto frame = static_cast<int64_t>(random.below(static_cast<uint64_t>(frames)));
      const at::Tensor infinities = at::randn({tokens}, generator) * std::numeric_limits<float>::infinity();
      scores[row][frame] = row % 5 == 0 ? at::full_like(infinities, NAN) : infinities;
    }
  }
  return scores;
}

TEST(Alignment, stays_within_the_row_if_scores_are_not_finite) {
  const int64_t rows = 300, frames = 30, tokens = 5;
  const at::Tensor scores = broken_scores(rows, frames, tokens);
  const at::Tensor text_lengths = at::full({rows}, tokens, at::kInt), mel_lengths = at::full({rows}, frames, at::kInt);
  for (int64_t row = 0; row < rows; ++row) {
    // One row per buffer, to detect writes out of bounds.
    at::Tensor found = at::empty({1, frames}, at::kInt), durations = at::full({1 + tokens}, 7, at::kInt);
    align_on_cpu(
        {1, tokens, frames, scores[row].const_data_ptr<float>(), text_lengths.const_data_ptr<int>(),
         mel_lengths.const_data_ptr<int>(), found.mutable_data_ptr<int>(), durations.mutable_data_ptr<int>() + 1},
        0);
    EXPECT_EQ(durations[0].item<int>(), 7);
    expect_valid_path(found[0], durations.narrow(0, 1, tokens));
  }
}

// The tests below need a GPU and a libtorch with CUDA.
bool no_gpu() { return device_count() == 0 || !at::globalContext().hasCUDA(); }

TEST(VoiceGpu, alignment_matches_the_cpu) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(11);
  // One text length per kernel instance; the last is too long for the warp kernel.
  for (const int tokens : {1, 90, 100, 150, 180, 220, 250, 300, 380, 500, 700}) {
    const int64_t rows = 9, frames = tokens + 200;
    const at::Tensor scores = at::randn({rows, frames, tokens}, generator) - 3;
    const auto text = [&](int number) { return std::min(number, tokens); };
    const at::Tensor text_lengths = at::tensor(
        {text(tokens), text(1), 0, text(17), text(127), text(128), text(257), text(32), text(120)}, at::kInt);
    const at::Tensor mel_lengths = at::tensor({static_cast<int>(frames), 1, 0, text(17), text(127), 100 + text(128),
                                               text(257) + 1, static_cast<int>(frames), text(120) + 5},
                                              at::kInt);
    at::Tensor expected = at::empty({rows, frames}, at::kInt), durations = at::empty({rows, tokens}, at::kInt);
    const AlignmentProblem problem = {rows,
                                      tokens,
                                      frames,
                                      scores.const_data_ptr<float>(),
                                      text_lengths.const_data_ptr<int>(),
                                      mel_lengths.const_data_ptr<int>(),
                                      expected.mutable_data_ptr<int>(),
                                      durations.mutable_data_ptr<int>()};
    for (int64_t row = 0; row < rows; ++row) align_on_cpu(problem, row);
    const at::Tensor gpu_scores = scores.cuda(), gpu_text = text_lengths.cuda(), gpu_mel = mel_lengths.cuda();
    const auto sevens = [](const at::Tensor& like) { return at::full_like(like, 7, at::TensorOptions(at::kCUDA)); };
    at::Tensor found = sevens(expected), found_durations = sevens(durations);
    at::Tensor scratch = at::empty({static_cast<int64_t>(alignment_scratch_bytes(problem))},
                                   at::TensorOptions(at::kByte).device(at::kCUDA));
    align_on_gpu(
        {rows, tokens, frames, gpu_scores.const_data_ptr<float>(), gpu_text.const_data_ptr<int>(),
         gpu_mel.const_data_ptr<int>(), found.mutable_data_ptr<int>(), found_durations.mutable_data_ptr<int>()},
        scratch.mutable_data_ptr(), nullptr);
    EXPECT_TRUE(found.cpu().equal(expected)) << tokens << " tokens";
    EXPECT_TRUE(found_durations.cpu().equal(durations)) << tokens << " tokens";
  }
}

TEST(VoiceGpu, alignment_stays_within_the_row_if_scores_are_not_finite) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  for (const int64_t tokens : {5, 600}) {  // warp kernel, block kernel
    const int64_t rows = 90, frames = tokens + 25;
    const at::Tensor scores = broken_scores(rows, frames, tokens).cuda();
    const at::Tensor text_lengths = at::full({rows}, tokens, at::kInt).cuda();
    const at::Tensor mel_lengths = at::full({rows}, frames, at::kInt).cuda();
    at::Tensor found = at::empty({rows, frames}, text_lengths.options());
    at::Tensor durations = at::full({rows, tokens}, 7, text_lengths.options());
    AlignmentProblem problem = {rows,
                                tokens,
                                frames,
                                scores.const_data_ptr<float>(),
                                text_lengths.const_data_ptr<int>(),
                                mel_lengths.const_data_ptr<int>(),
                                found.mutable_data_ptr<int>(),
                                durations.mutable_data_ptr<int>()};
    at::Tensor scratch = at::empty({static_cast<int64_t>(alignment_scratch_bytes(problem))},
                                   at::TensorOptions(at::kByte).device(at::kCUDA));
    align_on_gpu(problem, scratch.mutable_data_ptr(), nullptr);
    for (int64_t row = 0; row < rows; ++row) expect_valid_path(found[row].cpu(), durations[row].cpu());
  }
}

TEST(VoiceGpu, overwrites_trunk_gradients) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const Voice voice(test_spec());
  const Example example = make_example({{5, 23}, {9, 30}}, 16, 32, 16);
  const VoiceBatch batch = {example.batch.tokens.cuda(), example.batch.text_lengths.cuda(),
                            example.batch.mel_lengths.cuda(), example.batch.mel.cuda()};
  const FlowNoise noise = {example.noise.time.cuda(), example.noise.noise.cuda()};
  const int64_t trunks = voice.layout().trunk_elements();
  const auto trunk_gradients = [&](bool overwrite, double initial) {
    Weights weights = make_weights(voice.layout(), perturbed(voice).to(at::kCUDA, at::kBFloat16), true);
    weights.overwrite_trunk_gradients = overwrite;
    weights.gradients.narrow(0, 0, trunks).fill_(initial);
    add_gradients(voice.losses(weights, batch, noise).total, weights);
    return weights.gradients.narrow(0, 0, trunks).to(at::kFloat);
  };
  const at::Tensor expected = trunk_gradients(false, 0);
  EXPECT_GT(expected.abs().max().item<float>(), 0);
  EXPECT_TRUE(at::isclose(trunk_gradients(true, 64), expected, 0.02, 1e-3).to(at::kFloat).mean().item<float>() > 0.999);
  EXPECT_NEAR(trunk_gradients(false, 64).mean().item<double>(), 64, 1);
}

TEST(VoiceGpu, losses_and_gradients_match_the_cpu) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const Voice voice(test_spec());
  const Example example = make_example({{5, 23}, {9, 30}, {0, 0}, {16, 16}}, 16, 32, 16);
  const VoiceBatch batch = {example.batch.tokens.cuda(), example.batch.text_lengths.cuda(),
                            example.batch.mel_lengths.cuda(), example.batch.mel.cuda()};
  const FlowNoise noise = {example.noise.time.cuda(), example.noise.noise.cuda()};
  const Weights on_cpu = make_weights(voice.layout(), perturbed(voice), true);
  voice.losses(on_cpu, example.batch, example.noise).total.backward();
  for (const auto& [type, tolerance] : {std::pair(at::kFloat, 1e-4), std::pair(at::kBFloat16, 5e-2)}) {
    const Weights on_gpu = make_weights(voice.layout(), perturbed(voice).to(at::kCUDA, type), true);
    voice.losses(on_gpu, batch, noise).total.backward();
    const at::Tensor difference = on_gpu.gradients.cpu().to(at::kFloat) - on_cpu.gradients;
    EXPECT_LT(difference.norm().item<double>() / on_cpu.gradients.norm().item<double>(), tolerance);
  }
}

}  // namespace
}  // namespace myxtts
