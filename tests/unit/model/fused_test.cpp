#include "base/random.h"
#include "device/device.h"
#include "model/fused_calls.h"
#include "model/trunk.h"
#include "model/voice.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

bool no_gpu() { return device_count() == 0 || !at::globalContext().hasCUDA(); }

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor wide = expected.to(at::kDouble).cpu();
  return (found.to(at::kDouble).cpu() - wide).norm().item<double>() / (wide.norm().item<double>() + 1e-30);
}

// Random leaf tensors of one seed, the same values for every type and device except rounding.
class TensorFactory {
 public:
  TensorFactory(at::ScalarType type, at::Device device) : type_(type), device_(device) {}

  at::Tensor leaf(const std::vector<int64_t>& shape, double init_std, double mean = 0) {
    // Rounded to bfloat16 for every type, so that all variants have equal inputs.
    const at::Tensor values = (at::randn(shape, generator_) * init_std + mean).to(at::kBFloat16);
    at::Tensor results = values.to(type_).to(device_).detach().requires_grad_();
    results.mutable_grad() = at::zeros_like(results);
    leaves.push_back(results);
    return results;
  }

  std::vector<at::Tensor> leaves;

 private:
  at::ScalarType type_;
  at::Device device_;
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(3);
};

struct Result {
  at::Tensor out;
  std::vector<at::Tensor> gradients;
};

// Output of a trunk, and all gradients of a randomly weighted sum of its valid positions.
struct TrunkKind {
  bool modulated = false, convolutions = false;
  double dropout = 0;

  std::string name() const {
    return fmt::format("modulated {}, convolutions {}, dropout {}", modulated, convolutions, dropout);
  }
};

const std::vector<TrunkKind> trunk_kinds = {{false},          {true}, {false, true}, {true, true}, {false, true, 0.2},
                                            {true, true, 0.2}};

Result run_example(bool fused, const TrunkKind& kind, int64_t width, at::ScalarType type, at::Device device) {
  const bool modulated = kind.modulated;
  const int64_t kernel = kind.convolutions && !modulated ? 5 : 1;
  const int64_t rows = 5, positions = 37, blocks = 3;
  const at::Tensor lengths = at::tensor({37, 12, 1, 0, 30}, at::kInt).to(device);
  TensorFactory make(type, device);
  const double init_std = 1 / std::sqrt(static_cast<double>(width));
  Trunk trunk;
  for (int64_t i = 0; i < blocks; ++i) {
    trunk.blocks.push_back({make.leaf({3 * width, width}, 2 * init_std), make.leaf({width, width}, init_std),
                            make.leaf({4 * width, kernel * width}, init_std / std::sqrt(static_cast<double>(kernel))),
                            make.leaf({width, 4 * width}, init_std / 2),
                            modulated ? at::Tensor() : make.leaf({width}, 0.2, 1),
                            modulated ? at::Tensor() : make.leaf({width}, 0.2, 1),
                            modulated && kind.convolutions ? make.leaf({7, width}, 0.3) : at::Tensor()});
  }
  trunk.dropout = {at::full({}, 99, at::TensorOptions(at::kLong).device(device)), kind.dropout};
  if (modulated) {
    trunk.modulation = make.leaf({blocks, rows, 6, width}, 0.5);
    trunk.final_modulation = make.leaf({rows, 2, width}, 0.5);
  } else {
    trunk.norm = make.leaf({width}, 0.2, 1);
  }
  const at::Tensor x = make.leaf({rows, positions, width}, 1);
  const RowMask mask = make_row_mask(lengths, positions, type, fused);
  const at::Tensor valid = (at::arange(positions, lengths.options()) < lengths.unsqueeze(1)).unsqueeze(-1);
  const at::Tensor weighting = make.leaf({rows, positions, width}, 1).detach() * valid;
  const at::Tensor out = fused ? run_trunk_fused(trunk, x, mask) : run_trunk(trunk, x, mask);
  (out * weighting).to(at::kFloat).sum().backward();
  Result result{(out * valid).detach(), {}};
  for (const at::Tensor& leaf : make.leaves) result.gradients.push_back(leaf.grad());
  return result;
}

void expect_same(const Result& found, const Result& expected, double tolerance, const std::string& what) {
  EXPECT_LT(relative_error(found.out, expected.out), tolerance) << what;
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    EXPECT_LT(relative_error(found.gradients[i], expected.gradients[i]), tolerance) << what << ", gradient " << i;
  }
}

// Compares against float: fused kernels may have about the rounding error of plain operations in half precision.
void expect_rounding(const Result& fused, const Result& plain, const Result& exact, const std::string& what) {
  constexpr double always_allowed = 1e-2,
                   factor = 2.5;  // rounding errors of three blocks vary
  const auto expect = [&](const at::Tensor& found, const at::Tensor& other, const at::Tensor& expected,
                          const std::string& which) {
    EXPECT_LT(relative_error(found, expected), std::max(always_allowed, factor * relative_error(other, expected)))
        << what << ", " << which;
  };
  expect(fused.out, plain.out, exact.out, "result");
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    expect(fused.gradients[i], plain.gradients[i], exact.gradients[i], fmt::format("gradient {}", i));
  }
}

TEST(FusedTrunk, matches_the_plain_operations) {
  for (const TrunkKind& kind : trunk_kinds) {
    for (const int64_t width : {64, 192}) {
      expect_same(run_example(true, kind, width, at::kFloat, at::kCPU),
                  run_example(false, kind, width, at::kFloat, at::kCPU), 2e-5,
                  fmt::format("width {}, {}", width, kind.name()));
    }
  }
}

TEST(FusedTrunkGpu, matches_the_cpu) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  for (const TrunkKind& kind : trunk_kinds) {
    for (const int64_t width : {64, 192, 256, 320, 512, 640, 768, 1024}) {
      const Result expected = run_example(false, kind, width, at::kFloat, at::kCPU);
      const at::Device gpu(at::kCUDA, 0);
      expect_rounding(run_example(true, kind, width, at::kBFloat16, gpu),
                      run_example(false, kind, width, at::kBFloat16, gpu), expected,
                      fmt::format("width {}, {}", width, kind.name()));
    }
  }
}

// Each kernels on a device, from the same values everywhere.
std::vector<std::pair<std::string, at::Tensor>> run_kernels(int64_t width, at::ScalarType type, at::Device device) {
  const int64_t rows = 3, positions = 70, heads = width / 64;
  TensorFactory make(type, device);
  const auto values = [&](const std::vector<int64_t>& shape) { return make.leaf(shape, 1).detach(); };
  const auto empty = [&](const at::Tensor& like) { return at::full_like(like, 77); };
  std::vector<std::pair<std::string, at::Tensor>> results;
  for (const bool modulated : {true, false}) {
    const std::string name = modulated ? "modulated " : "plain ";
    const at::Tensor x = values({rows, positions, width}), branch = values({rows, positions, width});
    const at::Tensor modulation = values({rows, 6, width}), weight = values({width});
    const auto part = [&](int64_t number) { return modulated ? modulation.select(1, number) : at::Tensor(); };
    const at::Tensor scale = modulated ? part(0) : weight;
    at::Tensor sum = empty(x), normed = empty(x),
               inverse_rms = at::empty({rows, positions}, x.options().dtype(at::kFloat));
    add_norm(x, branch, part(2), scale, part(1), sum, normed, inverse_rms);
    results.insert(results.end(), {{name + "sum", sum}, {name + "normed", normed}, {name + "inverse", inverse_rms}});
    NormSums sums;
    AddNormGradients d{empty(x), {}, {}, {}, {}};
    d.d_branch = modulated ? empty(x) : d.d_x;
    const at::Tensor d_modulation = empty(modulation), d_weight = values({width}).clone();
    const auto d_part = [&](int64_t number) { return modulated ? d_modulation.select(1, number) : at::Tensor(); };
    d.d_scale = modulated ? d_part(0) : d_weight, d.d_shift = d_part(1), d.d_gate = d_part(2);
    add_norm_backward(x, branch, part(2), scale, inverse_rms, values({rows, positions, width}),
                      values({rows, positions, width}), d, sums);
    sums.finish();
    results.insert(results.end(), {{name + "d_x", d.d_x}, {name + "d_branch", d.d_branch}});
    if (modulated) {
      results.emplace_back("d_modulation", d_modulation.narrow(1, 0, 3));
    } else {
      results.emplace_back("d_weight", d_weight);
    }
  }
  const RowMask mask =
      make_row_mask(at::full({rows}, positions, at::TensorOptions(at::kInt).device(device)), positions, type, true);
  const at::Tensor rotated = values({rows, positions, 3, heads, 64}).clone();
  apply_rotary(rotated, mask);
  const std::vector<int64_t> part_shape = {rows, positions, heads, 64};
  const at::Tensor d_qkv = empty(rotated);
  rotary_backward(d_qkv, values(part_shape), values(part_shape), values(part_shape), mask);
  // Includes a derivative of 0 or 1, and a count that fills no block.
  const at::Tensor before_gelu = at::cat({values({positions, width}), values({positions, width}) * 20});
  at::Tensor d_gelu = values({2 * positions, width}).clone();
  gelu_backward(before_gelu, d_gelu);
  results.insert(results.end(), {{"rotated", rotated}, {"d_rotated", d_qkv}, {"d_gelu", d_gelu}});

  // Flow: rows of 70, 50 and no frames; tokens with one frame and with many.
  at::Tensor tokens = at::full({rows, positions}, -1, at::kInt);
  for (int64_t frame = 0; frame < positions; ++frame)
    tokens[0][frame] = static_cast<int>(frame < 40 ? frame / 10 : frame - 36);
  for (int64_t frame = 0; frame < 50; ++frame) tokens[1][frame] = static_cast<int>(frame / 7);
  const auto floats = [&](const std::vector<int64_t>& shape) { return values(shape).to(at::kFloat); };
  const FlowFrames frames{floats({rows, positions, 80}), floats({rows, positions, 80}), floats({rows}).abs(),
                          tokens.to(device), 1e-4};
  const at::Tensor mu = floats({rows, 40, 80}).requires_grad_();
  const DecoderInput start = decoder_input(frames, mu);
  (start.squares * 0.01 + (start.input * values({rows, positions, 160})).to(at::kFloat).sum()).backward();
  const at::Tensor flow = make.leaf({rows, positions, 80}, 1);
  const at::Tensor squares = flow_squared_error(frames, flow);
  (squares * 0.01).backward();
  results.insert(results.end(), {{"input", start.input.detach()},
                                 {"prior squares", start.squares.detach()},
                                 {"d_mu", mu.grad()},
                                 {"flow squares", squares.detach()},
                                 {"d_flow", flow.grad()}});
  return results;
}

TEST(FusedKernelsGpu, match_the_cpu) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  for (const int64_t width : {64, 192, 256, 512, 640, 768, 1024}) {
    const auto expected = run_kernels(width, at::kFloat, at::kCPU);
    const auto found = run_kernels(width, at::kBFloat16, at::Device(at::kCUDA, 0));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      constexpr double rounding = 6e-3;  // one or two bfloat16 roundings
      EXPECT_LT(relative_error(found[i].second, expected[i].second), rounding)
          << "width " << width << ", " << found[i].first;
    }
  }
}

// Losses and gradients of a whole voice.
Result voice_example(bool fused, at::ScalarType type, at::Device device) {
  VoiceSpec spec;
  spec.size = {"test", 2, 128, 3, 192};
  spec.vocabulary = 30;
  spec.n_mels = 80;
  spec.mel_mean = -5;
  spec.mel_std = 2;
  const Voice voice(spec, fused);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(9);
  const at::Tensor initial = voice.layout().initial(1);
  const at::Tensor flat = (initial + 0.03 * at::randn(initial.sizes(), generator)).to(at::kBFloat16);
  const int64_t rows = 4, tokens = 20, frames = 64;
  const auto there = [&](const at::Tensor& tensor) { return tensor.to(device); };
  const at::Tensor text_lengths = at::tensor({20, 7, 0, 13}, at::kInt),
                   mel_lengths = at::tensor({64, 7, 0, 50}, at::kInt);
  const at::Tensor mel = at::randn({rows, frames, spec.n_mels}, generator) * 2 - 5;
  const VoiceBatch batch = {there(at::randint(2, 30, {rows, tokens}, generator, at::TensorOptions(at::kInt))),
                            there(text_lengths), there(mel_lengths), there(mel)};
  const FlowNoise noise = {there(at::rand({rows}, generator)),
                           there(at::randn({rows, frames, spec.n_mels}, generator))};
  const Weights weights = make_weights(voice.layout(), there(flat.to(type)), true);
  const VoiceLosses losses = voice.losses(weights, batch, noise);
  losses.total.backward();
  return {at::stack({losses.total, losses["prior"], losses["duration"], losses["flow"]}).detach(),
          voice.layout().views(weights.gradients)};
}

TEST(FusedVoice, losses_and_gradients_match_the_plain_operations) {
  expect_same(voice_example(true, at::kFloat, at::kCPU), voice_example(false, at::kFloat, at::kCPU), 2e-5, "voice");
}

TEST(FusedVoiceGpu, losses_and_gradients_match_the_cpu) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const Result expected = voice_example(false, at::kFloat, at::kCPU);
  const at::Device gpu(at::kCUDA, 0);
  expect_rounding(voice_example(true, at::kBFloat16, gpu), voice_example(false, at::kBFloat16, gpu), expected, "voice");
}

}  // namespace
}  // namespace myxtts
