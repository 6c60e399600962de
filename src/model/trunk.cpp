#include "model/trunk.h"

#include "model/cpu_attention.h"
#include "model/fused.h"
#include "model/fused_calls.h"
#include "model/matmul.h"
#include "model/size.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace myxtts {

at::Tensor run_trunk(const Trunk& trunk, const at::Tensor& x, const RowMask& mask, const Inspect& inspect) {
  const auto show = [&](size_t block, const char* part, const at::Tensor& value) {
    if (inspect) inspect(trunk.name + ".blocks." + std::to_string(block) + part, value);
  };
  const at::Tensor& lengths = mask.row_lengths;
  const auto drop = [&](const at::Tensor& branch, size_t site) {
    return dropout(branch, trunk.dropout, trunk.first_site + static_cast<uint32_t>(site));
  };
  const auto ffn = [&](const Trunk::Block& block, const at::Tensor& normed) {
    const at::Tensor near = block.depthwise.defined() ? depthwise_conv(normed, block.depthwise, lengths) : normed;
    return feed_forward(near, block.ffn_in, block.ffn_out, lengths);
  };
  at::Tensor h = x;
  for (size_t i = 0; i < trunk.blocks.size(); ++i) {
    const Trunk::Block& block = trunk.blocks[i];
    if (trunk.modulation.defined()) {
      // Six tensors [rows, 1, width].
      const std::vector<at::Tensor> m = trunk.modulation[static_cast<int64_t>(i)].split(1, 1);
      h = h +
          m[2] * drop(attend(rms_norm(h) * (1 + m[0]) + m[1], block.attention_in, block.attention_out, mask), 2 * i);
      show(i, ".attention", h);
      h = h + m[5] * drop(ffn(block, rms_norm(h) * (1 + m[3]) + m[4]), 2 * i + 1);
    } else {
      if (block.attention_in.defined()) {
        h = h + drop(attend(rms_norm(h) * block.attention_norm, block.attention_in, block.attention_out, mask), 2 * i);
        show(i, ".attention", h);
      }
      h = h + drop(ffn(block, rms_norm(h) * block.ffn_norm), 2 * i + 1);
    }
    show(i, ".feed", h);
  }
  if (!trunk.modulation.defined()) return rms_norm(h) * trunk.norm;
  const std::vector<at::Tensor> last = trunk.final_modulation.split(1, 1);
  return rms_norm(h) * (1 + last[0]) + last[1];
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A branch of the residual stream: the attention of a block, or its feed-forward.
struct Branch {
  size_t block = 0;
  bool ffn = false;

  size_t number() const { return 2 * block + (ffn ? 1 : 0); }
};

std::vector<Branch> branches_of(const Trunk& trunk) {
  std::vector<Branch> branches;
  for (size_t i = 0; i < trunk.blocks.size(); ++i) {
    if (trunk.blocks[i].attention_in.defined()) branches.push_back({i, false});
    branches.push_back({i, true});
  }
  return branches;
}

// Norms are indexed as the branches that follow them, with the final norm last. Each first adds the gated output of the
// branch before it to the residual stream.
struct Norm {
  at::Tensor scale, shift, gate;  // [rows, width] or [width]; gate and shift may be undefined
};

Norm norm_of(const Trunk& trunk, const std::vector<Branch>& branches, size_t index) {
  const bool last = index == branches.size();
  const Branch& next = branches[last ? index - 1 : index];
  Norm norm;
  if (!trunk.modulation.defined()) {
    const Trunk::Block& block = trunk.blocks[next.block];
    norm.scale = last ? trunk.norm : next.ffn ? block.ffn_norm : block.attention_norm;
    return norm;
  }
  const auto part = [&](const Branch& branch, int64_t slot) {
    return trunk.modulation.select(0, static_cast<int64_t>(branch.block)).select(1, slot + (branch.ffn ? 3 : 0));
  };
  norm.scale = last ? trunk.final_modulation.select(1, 0) : part(next, 0);
  norm.shift = last ? trunk.final_modulation.select(1, 1) : part(next, 1);
  if (index > 0) norm.gate = part(branches[index - 1], 2);
  return norm;
}

// Tensors of a norm that its gradient needs.
struct NormActivations {
  at::Tensor sum, normed, inverse_rms, branch;
};

struct BlockActivations {
  at::Tensor qkv;                // after the rotary embedding
  at::Tensor attention_output;   // before the output projection
  at::Tensor lse;                // log-sum-exp of the scores; the fused kernel stores it negated
  at::Tensor rng_state, unused;  // passed by flash attention to its backward
  at::Tensor near;               // feed-forward: output of the depthwise convolution, if there is one
  at::Tensor unfolded;           // its neighbours side by side, if its kernel is over 1
  at::Tensor before_gelu, after_gelu;
};

// Activations for backward, owned by the autograd graph. Without gradients only those of the current block are kept.
struct SavedActivations : torch::CustomClassHolder {
  bool gradients = false;
  Trunk trunk;
  std::vector<Branch> branches;
  RowMask mask;
  std::vector<NormActivations> norms;
  std::vector<BlockActivations> blocks;
};

// Of the branch that norm `index` adds.
Dropout dropout_of(const Trunk& trunk, const std::vector<Branch>& branches, size_t index) {
  if (index == 0) return {};
  return dropout_at(trunk.dropout, trunk.first_site + static_cast<uint32_t>(branches[index - 1].number()));
}

NormActivations norm(const Norm& by, const at::Tensor& x, const at::Tensor& branch, const Dropout& dropout) {
  NormActivations result;
  result.branch = branch;
  result.sum = branch.defined() ? at::empty_like(x) : x;
  result.normed = at::empty_like(x);
  result.inverse_rms = at::empty({x.size(0), x.size(1)}, x.options().dtype(at::kFloat));
  add_norm(x, branch, by.gate, by.scale, by.shift, result.sum, result.normed, result.inverse_rms, dropout);
  return result;
}

at::Tensor flat(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

// Linear layer without bias: x [n, in], weight [out, in].
at::Tensor project(const at::Tensor& x, const at::Tensor& weight) {
  at::Tensor result = at::empty({x.size(0), weight.size(0)}, x.options());
  if (!tuned_matmul(x, weight, result)) at::mm_out(result, x, weight.t());
  return result;
}

// Overwrites or accumulates the gradient of the weight; returns that of x.
at::Tensor project_backward(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& weight, bool overwrite) {
  at::Tensor d_weight = weight.grad();
  if (!tuned_weight_gradient(d_out, x, d_weight, !overwrite)) {
    overwrite ? at::mm_out(d_weight, d_out.t(), x) : d_weight.addmm_(d_out.t(), x);
  }
  at::Tensor d_x = at::empty_like(x);
  if (!tuned_matmul_backward(d_out, weight, d_x)) at::mm_out(d_x, d_out, weight);
  return d_x;
}

at::Tensor flat_attention_output(const BlockActivations& saved, int64_t width) {
  return saved.attention_output.reshape({-1, width});
}

at::Tensor attention_forward(const at::Tensor& normed, const Trunk::Block& block, const RowMask& mask,
                             BlockActivations& saved) {
  const int64_t rows = normed.size(0), positions = normed.size(1), width = normed.size(2), heads = width / head_width;
  saved.qkv = project(flat(normed), block.attention_in).view({rows, positions, 3, heads, head_width});
  apply_rotary(saved.qkv, mask);
  if (mask.lengths.defined()) {
    saved.attention_output = at::empty_like(normed);
    saved.lse = empty_neg_lse(saved.qkv);
    fused_attention(saved.qkv, mask, saved.attention_output, saved.lse);
  } else if (mask.sequence_ends.defined()) {
    const std::vector<at::Tensor> parts = saved.qkv.unbind(2);
    const auto each = [&](const at::Tensor& part) { return part.view({rows * positions, heads, head_width}); };
    at::Tensor debug;
    std::tie(saved.attention_output, saved.lse, saved.rng_state, saved.unused, debug) =
        at::_flash_attention_forward(each(parts[0]), each(parts[1]), each(parts[2]), mask.sequence_ends,
                                     mask.sequence_ends, positions, positions, 0.0, false, false);
  } else {
    saved.attention_output = cpu_attention(saved.qkv, mask.row_lengths);
  }
  return project(flat_attention_output(saved, width), block.attention_out).view_as(normed);
}

// Maps the gradient of the attention branch to that of its normed input.
at::Tensor attention_backward(const at::Tensor& d_output, const at::Tensor& normed, const Trunk::Block& block,
                              const RowMask& mask, const BlockActivations& saved, bool overwrite) {
  const int64_t rows = normed.size(0), positions = normed.size(1), width = normed.size(2), heads = width / head_width;
  const at::Tensor d_attention_output =
      project_backward(flat(d_output), flat_attention_output(saved, width), block.attention_out, overwrite);
  at::Tensor d_qkv = at::empty({rows, positions, 3, heads, head_width}, saved.qkv.options());
  if (mask.lengths.defined()) {
    fused_attention_backward(saved.qkv, mask, saved.attention_output, saved.lse, d_attention_output, d_qkv);
  } else {
    AttentionGradients d;
    if (mask.sequence_ends.defined()) {
      const std::vector<at::Tensor> parts = saved.qkv.unbind(2);
      const auto each = [&](const at::Tensor& part) { return part.view({rows * positions, heads, head_width}); };
      std::tie(d.d_q, d.d_k, d.d_v) = at::_flash_attention_backward(
          each(d_attention_output), each(parts[0]), each(parts[1]), each(parts[2]), saved.attention_output, saved.lse,
          mask.sequence_ends, mask.sequence_ends, positions, positions, 0.0, false, saved.rng_state, saved.unused);
    } else {
      d = cpu_attention_backward(saved.qkv, mask.row_lengths,
                                 d_attention_output.view({rows, positions, heads, head_width}));
    }
    rotary_backward(d_qkv, d.d_q, d.d_k, d.d_v, mask);
  }
  return project_backward(d_qkv.view({-1, 3 * width}), flat(normed), block.attention_in, overwrite).view_as(normed);
}

at::Tensor feed_forward_forward(const at::Tensor& normed, const Trunk::Block& block, const RowMask& mask,
                                BlockActivations& saved) {
  const at::Tensor& lengths = mask.row_lengths;
  saved.near = block.depthwise.defined() ? fused_depthwise(normed, block.depthwise, lengths) : normed;
  saved.unfolded = fused_unfold(saved.near, lengths, block.ffn_in.size(1) / normed.size(2));
  const at::Tensor& x = saved.unfolded;
  saved.before_gelu = at::empty({x.size(0), block.ffn_in.size(0)}, x.options());
  saved.after_gelu = at::empty_like(saved.before_gelu);
  if (!tuned_matmul_gelu(x, block.ffn_in, saved.before_gelu, saved.after_gelu)) {
    at::mm_out(saved.before_gelu, x, block.ffn_in.t());
    at::gelu_out(saved.after_gelu, saved.before_gelu, "tanh");
  }
  return project(saved.after_gelu, block.ffn_out).view_as(normed);
}

at::Tensor feed_forward_backward(const at::Tensor& d_output, const at::Tensor& normed, const Trunk::Block& block,
                                 const RowMask& mask, const BlockActivations& saved, bool overwrite) {
  at::Tensor gradient = project_backward(flat(d_output), saved.after_gelu, block.ffn_out, overwrite);
  gelu_backward(saved.before_gelu, gradient);
  const at::Tensor d_unfolded = project_backward(gradient, saved.unfolded, block.ffn_in, overwrite);
  at::Tensor d_near = fused_unfold_backward(d_unfolded, normed, mask.row_lengths);
  if (!block.depthwise.defined()) return d_near;
  return fused_depthwise_backward(d_near, normed, block.depthwise, mask.row_lengths, overwrite);
}

// From the end of the buffer, as blocks are finished: so that the stretch that is finished grows.
void finish_block(const Trunk& trunk, const Trunk::Block& block) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& weight :
       {block.attention_in, block.attention_out, block.ffn_in, block.ffn_out, block.depthwise}) {
    if (weight.defined()) gradients.push_back(weight.grad());
  }
  std::sort(gradients.begin(), gradients.end(), [](const at::Tensor& one, const at::Tensor& other) {
    return one.storage_offset() > other.storage_offset();
  });
  for (const at::Tensor& gradient : gradients) trunk.gradient_ready(gradient);
}

struct FusedTrunk : torch::autograd::Function<FusedTrunk> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& modulation,
                            const std::optional<at::Tensor>& final_modulation,
                            const c10::intrusive_ptr<SavedActivations>& saved) {
    // Detached, because its history would create a reference cycle with the graph that owns this.
    if (modulation) saved->trunk.modulation = modulation->detach();
    if (final_modulation) saved->trunk.final_modulation = final_modulation->detach();
    const Trunk& trunk = saved->trunk;
    saved->branches = branches_of(trunk);
    const std::vector<Branch>& branches = saved->branches;
    saved->blocks.resize(trunk.blocks.size());
    const auto save = [&](size_t index, const at::Tensor& sum, const at::Tensor& branch) {
      NormActivations next = norm(norm_of(trunk, branches, index), sum, branch, dropout_of(trunk, branches, index));
      if (!saved->gradients) saved->norms.clear();
      saved->norms.push_back(std::move(next));
    };
    save(0, x.detach(), {});
    for (size_t i = 0; i < branches.size(); ++i) {
      const auto [number, ffn] = branches[i];
      const at::Tensor output = (ffn ? feed_forward_forward : attention_forward)(
          saved->norms.back().normed, trunk.blocks[number], saved->mask, saved->blocks[number]);
      save(i + 1, saved->norms.back().sum, output);
      if (!saved->gradients && ffn) saved->blocks[number] = {};
    }
    at::Tensor normed = std::exchange(saved->norms.back().normed, {});  // not needed for backward
    context->saved_data["activations"] = c10::IValue::make_capsule(saved);
    return normed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved =
        c10::static_intrusive_pointer_cast<SavedActivations>(context->saved_data["activations"].toCapsule());
    const Trunk& trunk = saved->trunk;
    const std::vector<Branch>& branches = saved->branches;
    // Gradients of the norm weights and the modulation, in the layout of a Trunk.
    Trunk d_trunk;
    d_trunk.blocks.resize(trunk.blocks.size());
    if (trunk.modulation.defined()) {
      d_trunk.modulation = at::empty_like(trunk.modulation);
      d_trunk.final_modulation = at::empty_like(trunk.final_modulation);
    } else {
      d_trunk.norm = trunk.norm.grad();
      for (size_t i = 0; i < trunk.blocks.size(); ++i) {
        if (trunk.blocks[i].attention_in.defined()) {
          d_trunk.blocks[i].attention_norm = trunk.blocks[i].attention_norm.grad();
        }
        d_trunk.blocks[i].ffn_norm = trunk.blocks[i].ffn_norm.grad();
      }
    }
    at::Tensor d_sum;  // gradient of the residual stream
    NormSums sums;
    // Maps the gradient of a norm's output to that of the branch before it, and updates d_sum.
    const auto norm_backward = [&](size_t index, const at::Tensor& d_normed) {
      NormActivations& forward = saved->norms[index];
      const Norm by = norm_of(trunk, branches, index), d_by = norm_of(d_trunk, branches, index);
      const Dropout dropout = dropout_of(trunk, branches, index);
      AddNormGradients d{at::empty_like(forward.sum), {}, d_by.scale, d_by.shift, d_by.gate};
      d.d_branch = by.gate.defined() || dropout.key != nullptr ? at::empty_like(forward.sum) : d.d_x;
      add_norm_backward(forward.sum, forward.branch, by.gate, by.scale, forward.inverse_rms, d_normed, d_sum, d, sums,
                        dropout);
      d_sum = d.d_x;
      forward = {{}, forward.normed, {}, {}};  // the weight gradient of the next product needs only `normed`
      return d.d_branch;
    };
    at::Tensor d_normed = gradients[0].contiguous();
    for (size_t i = branches.size(); i-- > 0;) {
      const auto [number, ffn] = branches[i];
      BlockActivations& block = saved->blocks[number];
      const at::Tensor d_branch = norm_backward(i + 1, d_normed);
      d_normed = (ffn ? feed_forward_backward : attention_backward)(
          d_branch, saved->norms[i].normed, trunk.blocks[number], saved->mask, block, trunk.overwrite_gradients);
      if (i > 0 && branches[i - 1].block == number) continue;
      block = {};
      if (trunk.gradient_ready) finish_block(trunk, trunk.blocks[number]);
    }
    norm_backward(0, d_normed);
    sums.finish();
    return {d_sum, d_trunk.modulation, d_trunk.final_modulation, {}};
  }
};

}  // namespace

at::Tensor run_trunk_fused(const Trunk& trunk, const at::Tensor& x, const RowMask& mask) {
  auto saved = c10::make_intrusive<SavedActivations>();
  saved->gradients = at::GradMode::is_enabled();
  saved->trunk = trunk;
  saved->mask = mask;
  const auto given = [](const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; };
  return FusedTrunk::apply(x, given(trunk.modulation), given(trunk.final_modulation), saved);
}

static_assert(std::ranges::all_of(model_sizes, [](const ModelSize& size) {
  return std::max(size.encoder_width, size.decoder_width) <= max_fused_width &&
         2 * std::max(size.encoder_blocks, size.decoder_blocks) + 1 <= max_norms;
}));

bool has_fused_kernels(const at::Tensor& x) { return x.scalar_type() == (x.is_cuda() ? at::kBFloat16 : at::kFloat); }

}  // namespace myxtts
