// The fused operations on tensors, on whichever device those are. Contiguous ones, but for vectors a row of a batch,
// which may lie in a larger tensor: [rows, width], or [width] for all rows.
#pragma once

#include "model/blocks.h"

#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Results into `sum` (where there is a branch), `normed` and `inverse`. See AddNorm.
void add_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
              const at::Tensor& shift, const at::Tensor& sum, const at::Tensor& normed, const at::Tensor& inverse);

struct AddNormGradients {
  at::Tensor d_x, d_branch;             // the same without a gate
  at::Tensor d_scale, d_shift, d_gate;  // [rows, width]: written. [width]: added to. Undefined: not wanted
};

// What the gradients of several norms of one shape have left to be added up, all at once.
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

// d_scale, d_shift and d_gate are there once `sums` is finished.
void add_norm_backward(const at::Tensor& sum, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
                       const at::Tensor& inverse, const at::Tensor& d_normed, const at::Tensor& d_sum,
                       const AddNormGradients& results, NormSums& sums);

// values [rows, positions, 3, heads, head_width], in place.
void rotate(const at::Tensor& values, const RowMask& mask);
void rotate_back(const at::Tensor& d_all, const at::Tensor& d_queries, const at::Tensor& d_keys,
                 const at::Tensor& d_values, const RowMask& mask);

// Attention of values [rows, positions, 3, heads, head_width], turned already, into `seen` [rows, positions, heads,
// head_width]; where the mask has lengths. See Attention.
at::Tensor empty_offsets(const at::Tensor& values);
void attend_fused(const at::Tensor& values, const RowMask& mask, const at::Tensor& seen, const at::Tensor& offsets);
// Into d_values as they were before they were turned.
void attend_fused_backward(const at::Tensor& values, const RowMask& mask, const at::Tensor& seen,
                           const at::Tensor& offsets, const at::Tensor& d_seen, const at::Tensor& d_values);

// The gradient of what comes before gelu (its tanh form), in place of that of what comes after it.
void gelu_backward(const at::Tensor& before, at::Tensor& gradient);

// What of a batch the flow's losses need beside what is learnt.
struct FlowFrames {
  at::Tensor mel, noise, time;  // float; mel normalised
  at::Tensor token_of_frame;    // int32
  double sigma = 0;
};

// The decoder's input, and the sum of (mel - mu)^2 over valid frames; with gradients.
struct FlowStart {
  at::Tensor input, squares;
};
FlowStart start_flow(const FlowFrames& frames, const at::Tensor& mu);

// The sum of squares of what `flow` is off over valid frames; with gradients.
at::Tensor flow_squares(const FlowFrames& frames, const at::Tensor& flow);

}  // namespace myxtts
