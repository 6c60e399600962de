#include "model/blocks.h"

#include "base/error.h"
#include "model/alignment.h"
#include "model/attention.h"
#include "model/fused.h"
#include "model/fused_calls.h"
#include "model/size.h"
#include "model/torch_stream.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>

namespace myxtts {
namespace {

at::Tensor rotary_table(int64_t positions, const at::TensorOptions& floats) {
  if (floats.device().is_cuda()) {
    const c10::DeviceGuard guard(floats.device());
    at::Tensor rotary = at::empty({2, positions, head_width / 2}, floats);
    fill_rotary_table_on_gpu(positions, rotary.mutable_data_ptr<float>(), current_stream(rotary.get_device()));
    return rotary;
  }
  const at::Tensor rates = at::exp(at::arange(head_width / 2, floats) * (-std::log(10000.0) * 2 / head_width));
  const at::Tensor angles = at::arange(positions, floats).unsqueeze(1) * rates;
  return at::stack({angles.cos(), angles.sin()});
}

bool has_fused_attention(const at::Device& device) {
  const c10::DeviceGuard guard(device);
  return gpu_has_fused_attention();
}

}  // namespace

RowMask make_row_mask(const at::Tensor& lengths, int64_t positions, at::ScalarType type, bool fused) {
  RowMask mask;
  mask.positions = positions;
  mask.row_lengths = lengths.to(at::kInt);
  const auto floats = lengths.options().dtype(at::kFloat);
  mask.rotary = rotary_table(positions, floats);
  const bool half_on_gpu = lengths.is_cuda() && type != at::kFloat;
  if (half_on_gpu && fused && has_fused_attention(lengths.device())) {
    mask.lengths = mask.row_lengths;
  } else if (half_on_gpu) {
    const at::Tensor row_end = (at::arange(lengths.size(0), lengths.options()) + 1) * positions;
    const at::Tensor ends = at::stack({row_end - positions + lengths, row_end}, 1).flatten();
    mask.sequence_ends = at::constant_pad_nd(ends, {1, 0}, 0).to(at::kInt);
  } else {
    const at::Tensor length = lengths.unsqueeze(1), position = at::arange(positions, lengths.options());
    const at::Tensor masked = at::logical_and(position >= length, length > 0);
    mask.key_bias = at::zeros(masked.sizes(), floats.dtype(type))
                        .masked_fill_(masked, -std::numeric_limits<double>::infinity())
                        .unsqueeze(1)
                        .unsqueeze(1);
  }
  return mask;
}

at::Tensor dropout(const at::Tensor& x, const DropoutKey& key, uint32_t site) {
  return key.on() ? x * dropout_multipliers(x, key, site).to(x.scalar_type()) : x;
}

namespace {

// [rows, positions + kernel - 1, width]: each row between zeros.
at::Tensor between_zeros(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel) {
  const at::Tensor inside = at::arange(x.size(1), lengths.options()) < lengths.unsqueeze(1);
  return at::constant_pad_nd(x * inside.unsqueeze(-1).to(x.scalar_type()), {0, 0, kernel / 2, kernel / 2});
}

}  // namespace

at::Tensor unfold_positions(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel) {
  if (kernel == 1) return x;
  const at::Tensor padded = between_zeros(x, lengths, kernel);
  std::vector<at::Tensor> taps;
  for (int64_t tap = 0; tap < kernel; ++tap) taps.push_back(padded.narrow(1, tap, x.size(1)));
  return at::cat(taps, -1);
}

at::Tensor depthwise_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths) {
  const at::Tensor padded = between_zeros(x, lengths, weight.size(0));
  at::Tensor y = x;
  for (int64_t tap = 0; tap < weight.size(0); ++tap) y = y + padded.narrow(1, tap, x.size(1)) * weight[tap];
  return y;
}

at::Tensor rms_norm(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kFloat);
  constexpr double eps = 1e-6;
  return (wide * at::rsqrt(wide.square().mean(-1, true) + eps)).to(x.scalar_type());
}

namespace {

// x [rows, positions, heads, head_width]: rotates the two halves of a head against each other.
at::Tensor rotated(const at::Tensor& x, const RowMask& mask) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  const at::Tensor rotary = mask.rotary.unsqueeze(2).to(x.scalar_type()), cosines = rotary[0], sines = rotary[1];
  return at::cat({halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, -1);
}

}  // namespace

at::Tensor attend(const at::Tensor& x, const at::Tensor& weight_in, const at::Tensor& weight_out, const RowMask& mask) {
  const int64_t rows = x.size(0), positions = x.size(1), width = x.size(2), heads = width / head_width;
  const std::vector<at::Tensor> qkv = at::linear(x, weight_in).view({rows, positions, 3, heads, head_width}).unbind(2);
  const at::Tensor query = rotated(qkv[0], mask), key = rotated(qkv[1], mask);
  if (!mask.sequence_ends.defined() && !mask.key_bias.defined())
    fail("attend", "the mask was made for the fused kernels", way_out("make it with fused = false"));
  at::Tensor output;
  if (mask.sequence_ends.defined()) {
    const auto flat = [&](const at::Tensor& part) { return part.reshape({rows * positions, heads, head_width}); };
    output = std::get<0>(at::_flash_attention_forward(flat(query), flat(key), flat(qkv[2]), mask.sequence_ends,
                                                      mask.sequence_ends, positions, positions, 0.0, false, false));
  } else {
    output = at::scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2), qkv[2].transpose(1, 2),
                                              mask.key_bias)
                 .transpose(1, 2);
  }
  return at::linear(output.reshape({rows, positions, width}), weight_out);
}

at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& weight_in, const at::Tensor& weight_out,
                        const at::Tensor& lengths) {
  const at::Tensor unfolded = unfold_positions(x, lengths, weight_in.size(1) / x.size(2));
  return at::linear(at::gelu(at::linear(unfolded, weight_in), "tanh"), weight_out);
}

at::Tensor time_embedding(const at::Tensor& time, int64_t width) {
  const at::Tensor rates =
      at::exp(at::arange(width / 2, time.options()) * (-std::log(10000.0) * 2 / static_cast<double>(width)));
  const at::Tensor angles = 1000 * time.unsqueeze(1) * rates;
  return at::cat({angles.sin(), angles.cos()}, 1);
}

Alignment align_frames(const at::Tensor& mel, const at::Tensor& mu, const at::Tensor& text_lengths,
                       const at::Tensor& mel_lengths) {
  // Gaussian log-likelihood of a frame given a token's mean, without the terms that all tokens share.
  const at::Tensor scores =
      at::baddbmm(mu.square().sum(-1).unsqueeze(1), mel, mu.transpose(1, 2), -0.5, 1.0).contiguous();
  Alignment result = {at::empty({mel.size(0), mel.size(1)}, text_lengths.options()),
                      at::empty({mel.size(0), mu.size(1)}, text_lengths.options())};
  AlignmentProblem problem;
  problem.rows = mel.size(0);
  problem.tokens = mu.size(1);
  problem.frames = mel.size(1);
  problem.scores = scores.const_data_ptr<float>();
  problem.text_lengths = text_lengths.const_data_ptr<int32_t>();
  problem.mel_lengths = mel_lengths.const_data_ptr<int32_t>();
  problem.token_of_frame = result.token_of_frame.mutable_data_ptr<int32_t>();
  problem.durations = result.durations.mutable_data_ptr<int32_t>();
  if (mel.is_cuda()) {
    constexpr int64_t max_tokens = 6144;  // two rows of scores fit in a block's shared memory
    if (problem.tokens > max_tokens) {
      fail("align", "a text of {} tokens is too long for alignment on the GPU, which takes at most {}", problem.tokens,
           max_tokens, way_out("lower --max-text-length"));
    }
    const c10::DeviceGuard guard(mel.device());
    at::Tensor scratch =
        at::empty({static_cast<int64_t>(alignment_scratch_bytes(problem))}, mel.options().dtype(at::kByte));
    align_on_gpu(problem, scratch.mutable_data_ptr(), current_stream(mel.get_device()));
  } else {
    at::parallel_for(0, problem.rows, 1, [&](int64_t first, int64_t end) {
      for (int64_t row = first; row < end; ++row) align_on_cpu(problem, row);
    });
  }
  return result;
}

}  // namespace myxtts
