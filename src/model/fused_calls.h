// Fused operations on tensors of either device. Tensors are contiguous, except per-row vectors, which may be slices of
// a larger tensor: [rows, width], or [width] for all rows.
#pragma once

#include "model/blocks.h"
#include "model/dropout.h"

#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

// What the fused kernels take for a site of `key`; the key's memory must outlive the call.
Dropout dropout_at(const DropoutKey& key, uint32_t site);
// Multipliers for x [rows, positions, width], in float.
at::Tensor dropout_multipliers(const at::Tensor& x, const DropoutKey& key, uint32_t site);

// Writes `sum` (if there is a branch), `normed` and `inverse_rms`. See AddNorm.
void add_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
              const at::Tensor& shift, const at::Tensor& sum, const at::Tensor& normed, const at::Tensor& inverse_rms,
              const Dropout& dropout = {});

struct AddNormGradients {
  at::Tensor d_x, d_branch;             // the same tensor without a gate and without dropout
  at::Tensor d_scale, d_shift, d_gate;  // [rows, width]: overwritten; [width]: accumulated; undefined: skipped
};

// Collects the partial sums of several norms of one shape and reduces them in one launch.
class NormSums {
 public:
  void add(const at::Tensor& parts, const AddNormGradients& results);
  void finish();

 private:
  struct Norm {
    at::Tensor parts, d_scale, d_shift, d_gate;
  };
  std::vector<Norm> norms_;
};

// d_scale, d_shift and d_gate are valid after sums.finish().
void add_norm_backward(const at::Tensor& sum, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
                       const at::Tensor& inverse_rms, const at::Tensor& d_normed, const at::Tensor& d_sum,
                       const AddNormGradients& results, NormSums& sums, const Dropout& dropout = {});

// Convolutions over positions; see conv.h. x is [rows, positions, width].
at::Tensor fused_unfold(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel);  // [n, kernel width]
at::Tensor fused_unfold_backward(const at::Tensor& d_unfolded, const at::Tensor& x, const at::Tensor& lengths);
at::Tensor fused_depthwise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths);
// Returns the gradient of x; overwrites or accumulates that of the weight.
at::Tensor fused_depthwise_backward(const at::Tensor& d_y, const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& lengths, bool overwrite);

// Rotary embedding of qkv [rows, positions, 3, heads, head_width], in place.
void apply_rotary(const at::Tensor& qkv, const RowMask& mask);
void rotary_backward(const at::Tensor& d_qkv, const at::Tensor& d_q, const at::Tensor& d_k, const at::Tensor& d_v,
                     const RowMask& mask);

// Fused attention of qkv [rows, positions, 3, heads, head_width] after the rotary embedding, into `output` [rows,
// positions, heads, head_width]. Needs a mask with lengths. See Attention.
at::Tensor empty_neg_lse(const at::Tensor& qkv);
void fused_attention(const at::Tensor& qkv, const RowMask& mask, const at::Tensor& output, const at::Tensor& neg_lse);
// Writes d_qkv with respect to QKV before the rotary embedding.
void fused_attention_backward(const at::Tensor& qkv, const RowMask& mask, const at::Tensor& output,
                              const at::Tensor& neg_lse, const at::Tensor& d_output, const at::Tensor& d_qkv);

// Replaces the gradient of the output of GELU (tanh) by that of its input `before`.
void gelu_backward(const at::Tensor& before, at::Tensor& gradient);

// Inputs of the flow losses that need no gradients.
struct FlowFrames {
  at::Tensor mel, noise, time;  // float; mel normalised
  at::Tensor token_of_frame;    // int32
  double sigma_min = 0;
};

// unfold_positions (model/blocks.h) in one kernel each way; differentiable.
at::Tensor unfold_positions_fused(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel);

// Decoder input [x_t, mu] and the sum of (mel - mu)^2 over valid frames; differentiable.
struct DecoderInput {
  at::Tensor input, squares;
};
DecoderInput decoder_input(const FlowFrames& frames, const at::Tensor& mu);

// Sum of squared errors of `flow` over valid frames; differentiable.
at::Tensor flow_squared_error(const FlowFrames& frames, const at::Tensor& flow);

}  // namespace myxtts
