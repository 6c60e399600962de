#include "train/row_workers.h"
#include "train/voice_trainable.h"

#include <atomic>
#include <stdexcept>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

constexpr int64_t rows = 6, heard = 3, tokens = 12, frames = 40, mels = 16;

VoiceSpec spec_of(bool speakers) {
  VoiceSpec spec;
  spec.size = {"test", 1, 64, 2, 64};
  spec.vocabulary = 20, spec.n_mels = mels;
  if (speakers) spec.speakers = 5, spec.languages = 2;
  return spec;
}

TensorMap make_batch(bool speakers) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const auto ints = at::TensorOptions(at::kInt);
  TensorMap batch = {{"tokens", at::randint(2, 20, {rows, tokens}, generator, ints)},
                     {"text_lengths", at::tensor({12, 5, 9, 3, 12, 7}, at::kInt)},
                     {"mel_lengths", at::tensor({40, 30, 33, 12, 40, 8}, at::kInt)},
                     {"mel", at::randn({rows, frames, mels}, generator)}};
  if (!speakers) return batch;
  batch.add("speaker", at::tensor({0, 4, 2, 2, -1, 1}, at::kInt));
  batch.add("language", at::tensor({0, 1, 1, 0, 0, 1}, at::kInt));
  batch.add("reference", at::randn({heard, 24, mels}, generator));
  batch.add("reference_lengths", at::tensor({24, 0, 15}, at::kInt));
  return batch;
}

struct Result {
  at::Tensor losses, gradients;
};

Result result_of(const VoiceTrainable& voice, const at::Tensor& flat, const std::vector<Trainable::Part>& parts) {
  const Weights weights = make_weights(*voice.groups().front().layout, flat, true);
  at::Tensor sum;
  for (const Trainable::Part& part : parts) {
    const std::vector<at::Tensor> losses = voice.losses(0, {&weights, 1}, part.batch, part.noise, {});
    add_gradients(losses.front(), weights);
    const at::Tensor all = at::stack(losses).detach();
    sum = sum.defined() ? sum + all : all;
  }
  return {sum, weights.gradients};
}

void expect_same(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_LT((got - want).norm().item<double>(), 1e-5 * want.norm().item<double>());
}

class DividedBatch : public testing::TestWithParam<bool> {};

TEST_P(DividedBatch, has_the_losses_and_gradients_of_the_whole) {
  const VoiceTrainable voice(spec_of(GetParam()), {}, true, /*dropout=*/0.3);
  const TensorMap batch = make_batch(GetParam());
  TensorMap noise = voice.make_noise(batch);
  voice.draw_noise(noise, seeded_generator(at::kCPU, 7), {});
  // Not the initial weights: with them the decoder is the identity.
  const at::Tensor flat =
      voice.groups().front().layout->initial(1) +
      at::randn({voice.groups().front().layout->elements()}, at::make_generator<at::CPUGeneratorImpl>(5)) * 0.05;
  const Result whole = result_of(voice, flat, {{batch, noise}});
  for (const int64_t most : {2, 3}) {
    const std::vector<Trainable::Part> parts = voice.divided(batch, noise, most);
    ASSERT_EQ(parts.size(), static_cast<size_t>(most));
    const Result divided = result_of(voice, flat, parts);
    expect_same(divided.losses, whole.losses);
    expect_same(divided.gradients, whole.gradients);
  }
}

// The rows that a rank has, as its loader makes them: references are as many on every rank, and those beyond the whole
// batch's are empty.
Trainable::Part part_of_rank(const VoiceTrainable& voice, const TensorMap& batch, int64_t rank, int64_t ranks) {
  Trainable::Part part;
  for (const auto& [name, tensor] : batch) {
    at::Tensor own = tensor.slice(0, rank, tensor.size(0), ranks).contiguous();
    const int64_t heard_here = (heard + ranks - 1) / ranks;
    if (name.starts_with("reference") && own.size(0) < heard_here) {
      std::vector<int64_t> sizes = own.sizes().vec();
      sizes[0] = heard_here - own.size(0);
      own = at::cat({own, at::zeros(sizes, own.options())});
    }
    part.batch.add(name, own);
  }
  std::vector<RowLength> lengths;
  for (int64_t row = 0; row < rows; ++row) {
    lengths.push_back({batch["text_lengths"][row].item<int>(), batch["mel_lengths"][row].item<int>()});
  }
  for (const auto& [name, count] : voice.counts(lengths)) part.batch.add(name, at::full({}, count, at::kLong));
  part.batch.rows = {rank, ranks};
  part.noise = voice.make_noise(part.batch);
  voice.draw_noise(part.noise, seeded_generator(at::kCPU, 7), part.batch.rows);
  return part;
}

TEST_P(DividedBatch, adds_up_over_ranks_and_over_the_parts_of_each) {
  const VoiceTrainable voice(spec_of(GetParam()), {}, true, /*dropout=*/0.3);
  const TensorMap batch = make_batch(GetParam());
  TensorMap noise = voice.make_noise(batch);
  voice.draw_noise(noise, seeded_generator(at::kCPU, 7), {});
  const at::Tensor flat =
      voice.groups().front().layout->initial(1) +
      at::randn({voice.groups().front().layout->elements()}, at::make_generator<at::CPUGeneratorImpl>(5)) * 0.05;
  const Result whole = result_of(voice, flat, {{batch, noise}});
  for (const int64_t ranks : {2, 3}) {
    std::vector<Trainable::Part> of_ranks, of_parts;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      of_ranks.push_back(part_of_rank(voice, batch, rank, ranks));
      const auto parts = voice.divided(of_ranks.back().batch, of_ranks.back().noise, 2);
      of_parts.insert(of_parts.end(), parts.begin(), parts.end());
    }
    for (const auto& parts : {of_ranks, of_parts}) {
      const Result divided = result_of(voice, flat, parts);
      expect_same(divided.losses, whole.losses);
      expect_same(divided.gradients, whole.gradients);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutSpeakers, DividedBatch, testing::Bool());

TEST(DividedBatch, has_no_more_parts_than_rows_with_a_reference) {
  const VoiceTrainable voice(spec_of(true), {}, true, 0);
  const TensorMap batch = make_batch(true);
  TensorMap noise = voice.make_noise(batch);
  EXPECT_EQ(voice.divided(batch, noise, 64).size(), static_cast<size_t>(heard));
}

TEST(RowWorkers, run_every_part_once_and_pass_on_an_error) {
  RowWorkers workers(4);
  ASSERT_EQ(workers.size(), 4U);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> sum = 0;
    workers.run(3, [&](size_t part) { sum += 1 << part; });
    ASSERT_EQ(sum, 7);
  }
  EXPECT_THROW(workers.run(2,
                           [](size_t part) {
                             if (part == 1) throw std::runtime_error("planted");
                           }),
               std::runtime_error);
  std::atomic<int> ran = 0;
  workers.run(4, [&](size_t) { ++ran; });
  EXPECT_EQ(ran, 4);
}

}  // namespace
}  // namespace myxtts
