#include "model/trunk.h"

#include "model/fused.h"
#include "model/fused_calls.h"
#include "model/products.h"
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
  at::Tensor h = x;
  for (size_t i = 0; i < trunk.blocks.size(); ++i) {
    const Trunk::Block& block = trunk.blocks[i];
    if (trunk.modulation.defined()) {
      // Six of [rows, 1, width].
      const std::vector<at::Tensor> m = trunk.modulation[static_cast<int64_t>(i)].split(1, 1);
      h = h + m[2] * attend(normalize(h) * (1 + m[0]) + m[1], block.attention_in, block.attention_out, mask);
      show(i, ".attention", h);
      h = h + m[5] * feed_forward(normalize(h) * (1 + m[3]) + m[4], block.feed_in, block.feed_out);
    } else {
      h = h + attend(normalize(h) * block.attention_norm, block.attention_in, block.attention_out, mask);
      show(i, ".attention", h);
      h = h + feed_forward(normalize(h) * block.feed_norm, block.feed_in, block.feed_out);
    }
    show(i, ".feed", h);
  }
  if (!trunk.modulation.defined()) return normalize(h) * trunk.norm;
  const std::vector<at::Tensor> last = trunk.last_modulation.split(1, 1);
  return normalize(h) * (1 + last[0]) + last[1];
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The norms of a trunk in their order: one before each half of a block, and the last. A norm first adds what the half
// before it made, behind that one's gate.
struct Norm {
  at::Tensor scale, shift, gate;  // [rows, width] or [width]; a gate or a shift may be missing
};

Norm norm_of(const Trunk& trunk, size_t number) {
  const size_t block = number / 2;
  const bool last = block == trunk.blocks.size(), feed = number % 2 == 1;
  Norm norm;
  if (!trunk.modulation.defined()) {
    norm.scale = last ? trunk.norm : feed ? trunk.blocks[block].feed_norm : trunk.blocks[block].attention_norm;
    return norm;
  }
  const auto part = [&](size_t of_block, int64_t slot) {
    return trunk.modulation.select(0, static_cast<int64_t>(of_block)).select(1, slot);
  };
  norm.scale = last ? trunk.last_modulation.select(1, 0) : part(block, feed ? 3 : 0);
  norm.shift = last ? trunk.last_modulation.select(1, 1) : part(block, feed ? 4 : 1);
  if (number > 0) norm.gate = feed ? part(block, 2) : part(block - 1, 5);
  return norm;
}

// What a norm made, and what its gradient needs.
struct Normed {
  at::Tensor sum, normed, inverse, branch;
};

struct Products {
  at::Tensor values, seen, softmax;    // attention: turned queries, keys and values; what was seen; the softmax's sums
                                       // (with our own, its offsets)
  at::Tensor random, unused;           // what flash attention hands to its gradient
  at::Tensor before_gelu, after_gelu;  // feed-forward
};

// Everything that the gradient needs, kept as long as the graph; what the next block needs where there is none.
struct Kept : torch::CustomClassHolder {
  bool gradients = false;
  Trunk trunk;
  RowMask mask;
  std::vector<Normed> norms;
  std::vector<Products> blocks;
};

Normed norm(const Norm& by, const at::Tensor& x, const at::Tensor& branch) {
  Normed made;
  made.branch = branch;
  made.sum = branch.defined() ? at::empty_like(x) : x;
  made.normed = at::empty_like(x);
  made.inverse = at::empty({x.size(0), x.size(1)}, x.options().dtype(at::kFloat));
  add_norm(x, branch, by.gate, by.scale, by.shift, made.sum, made.normed, made.inverse);
  return made;
}

at::Tensor flat(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

// x [n, in] and a weight [out, in].
at::Tensor product(const at::Tensor& x, const at::Tensor& weight) {
  at::Tensor made = at::empty({x.size(0), weight.size(0)}, x.options());
  if (!chosen_product(x, weight, made)) at::mm_out(made, x, weight.t());
  return made;
}

// Writes the weight's gradient, or adds to it, and returns x's.
at::Tensor product_backward(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& weight, bool fresh) {
  at::Tensor d_weight = weight.grad();
  if (!chosen_weight_gradient(d_out, x, d_weight, !fresh)) {
    fresh ? at::mm_out(d_weight, d_out.t(), x) : d_weight.addmm_(d_out.t(), x);
  }
  at::Tensor d_x = at::empty_like(x);
  if (!chosen_product_backward(d_out, weight, d_x)) at::mm_out(d_x, d_out, weight);
  return d_x;
}

// What was seen, as rows; on a CPU the heads lie apart.
at::Tensor flat_seen(const Products& kept, const RowMask& mask, int64_t width) {
  const bool heads_apart = !mask.lengths.defined() && !mask.sequence_ends.defined();
  return (heads_apart ? kept.seen.transpose(1, 2) : kept.seen).reshape({-1, width});
}

at::Tensor attention_forward(const at::Tensor& normed, const Trunk::Block& block, const RowMask& mask, Products& kept) {
  const int64_t rows = normed.size(0), positions = normed.size(1), width = normed.size(2), heads = width / head_width;
  kept.values = product(flat(normed), block.attention_in).view({rows, positions, 3, heads, head_width});
  rotate(kept.values, mask);
  const std::vector<at::Tensor> parts = kept.values.unbind(2);
  if (mask.lengths.defined()) {
    kept.seen = at::empty_like(normed);
    kept.softmax = empty_offsets(kept.values);
    attend_fused(kept.values, mask, kept.seen, kept.softmax);
  } else if (mask.sequence_ends.defined()) {
    const auto each = [&](const at::Tensor& part) { return part.view({rows * positions, heads, head_width}); };
    at::Tensor debug;
    std::tie(kept.seen, kept.softmax, kept.random, kept.unused, debug) =
        at::_flash_attention_forward(each(parts[0]), each(parts[1]), each(parts[2]), mask.sequence_ends,
                                     mask.sequence_ends, positions, positions, 0.0, false, false);
  } else {
    std::tie(kept.seen, kept.softmax) = at::_scaled_dot_product_flash_attention_for_cpu(
        parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2), 0.0, false, mask.key_bias);
  }
  return product(flat_seen(kept, mask, width), block.attention_out).view_as(normed);
}

// From the gradient of what attention made to that of its normed input.
at::Tensor attention_backward(const at::Tensor& d_made, const at::Tensor& normed, const Trunk::Block& block,
                              const RowMask& mask, const Products& kept, bool fresh) {
  const int64_t rows = normed.size(0), positions = normed.size(1), width = normed.size(2), heads = width / head_width;
  const at::Tensor d_seen = product_backward(flat(d_made), flat_seen(kept, mask, width), block.attention_out, fresh);
  at::Tensor d_all = at::empty({rows, positions, 3, heads, head_width}, kept.values.options());
  if (mask.lengths.defined()) {
    attend_fused_backward(kept.values, mask, kept.seen, kept.softmax, d_seen, d_all);
  } else {
    const std::vector<at::Tensor> parts = kept.values.unbind(2);
    at::Tensor d_queries, d_keys, d_values;
    if (mask.sequence_ends.defined()) {
      const auto each = [&](const at::Tensor& part) { return part.view({rows * positions, heads, head_width}); };
      std::tie(d_queries, d_keys, d_values) = at::_flash_attention_backward(
          each(d_seen), each(parts[0]), each(parts[1]), each(parts[2]), kept.seen, kept.softmax, mask.sequence_ends,
          mask.sequence_ends, positions, positions, 0.0, false, kept.random, kept.unused);
    } else {
      const at::Tensor d_out = d_seen.view({rows, positions, heads, head_width}).transpose(1, 2);
      std::tie(d_queries, d_keys, d_values) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          d_out, parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2), kept.seen, kept.softmax,
          0.0, false, mask.key_bias);
      for (at::Tensor* part : {&d_queries, &d_keys, &d_values}) *part = part->transpose(1, 2).contiguous();
    }
    rotate_back(d_all, d_queries, d_keys, d_values, mask);
  }
  return product_backward(d_all.view({-1, 3 * width}), flat(normed), block.attention_in, fresh).view_as(normed);
}

at::Tensor feed_forward_forward(const at::Tensor& normed, const Trunk::Block& block, Products& kept) {
  const at::Tensor x = flat(normed);
  kept.before_gelu = at::empty({x.size(0), block.feed_in.size(0)}, x.options());
  kept.after_gelu = at::empty_like(kept.before_gelu);
  if (!chosen_product_gelu(x, block.feed_in, kept.before_gelu, kept.after_gelu)) {
    at::mm_out(kept.before_gelu, x, block.feed_in.t());
    at::gelu_out(kept.after_gelu, kept.before_gelu, "tanh");
  }
  return product(kept.after_gelu, block.feed_out).view_as(normed);
}

at::Tensor feed_forward_backward(const at::Tensor& d_made, const at::Tensor& normed, const Trunk::Block& block,
                                 const Products& kept, bool fresh) {
  at::Tensor gradient = product_backward(flat(d_made), kept.after_gelu, block.feed_out, fresh);
  gelu_backward(kept.before_gelu, gradient);
  return product_backward(gradient, flat(normed), block.feed_in, fresh).view_as(normed);
}

struct FusedTrunk : torch::autograd::Function<FusedTrunk> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& modulation,
                            const std::optional<at::Tensor>& last_modulation, const c10::intrusive_ptr<Kept>& kept) {
    // Detached: with its history it would keep the graph that keeps this.
    if (modulation) kept->trunk.modulation = modulation->detach();
    if (last_modulation) kept->trunk.last_modulation = last_modulation->detach();
    const Trunk& trunk = kept->trunk;
    kept->blocks.resize(trunk.blocks.size());
    const auto keep = [&](Normed made) {
      if (!kept->gradients) kept->norms.clear();
      kept->norms.push_back(std::move(made));
    };
    keep(norm(norm_of(trunk, 0), x.detach(), {}));
    for (size_t i = 0; i < trunk.blocks.size(); ++i) {
      const at::Tensor attended =
          attention_forward(kept->norms.back().normed, trunk.blocks[i], kept->mask, kept->blocks[i]);
      keep(norm(norm_of(trunk, 2 * i + 1), kept->norms.back().sum, attended));
      const at::Tensor fed = feed_forward_forward(kept->norms.back().normed, trunk.blocks[i], kept->blocks[i]);
      keep(norm(norm_of(trunk, 2 * i + 2), kept->norms.back().sum, fed));
      if (!kept->gradients) kept->blocks[i] = {};
    }
    const at::Tensor normed = std::exchange(kept->norms.back().normed, {});  // nothing needs it again
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    return normed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto kept = c10::static_intrusive_pointer_cast<Kept>(context->saved_data["kept"].toCapsule());
    const Trunk& trunk = kept->trunk;
    // The gradients of the modulation, in the same places.
    Trunk d_trunk;
    d_trunk.blocks.resize(trunk.blocks.size());
    if (trunk.modulation.defined()) {
      d_trunk.modulation = at::empty_like(trunk.modulation);
      d_trunk.last_modulation = at::empty_like(trunk.last_modulation);
    } else {
      d_trunk.norm = trunk.norm.grad();
      for (size_t i = 0; i < trunk.blocks.size(); ++i) {
        d_trunk.blocks[i].attention_norm = trunk.blocks[i].attention_norm.grad();
        d_trunk.blocks[i].feed_norm = trunk.blocks[i].feed_norm.grad();
      }
    }
    at::Tensor d_sum;  // of the way past the blocks
    NormSums sums;
    // Takes the gradient of a norm's result, and returns that of the half before it.
    const auto through_norm = [&](size_t number, const at::Tensor& d_normed) {
      Normed& made = kept->norms[number];
      const Norm by = norm_of(trunk, number), d_by = norm_of(d_trunk, number);
      AddNormGradients d{at::empty_like(made.sum), {}, d_by.scale, d_by.shift, d_by.gate};
      d.d_branch = by.gate.defined() ? at::empty_like(made.sum) : d.d_x;
      add_norm_backward(made.sum, made.branch, by.gate, by.scale, made.inverse, d_normed, d_sum, d, sums);
      d_sum = d.d_x;
      made = {{}, made.normed, {}, {}};  // the product before it still needs what was normed
      return d.d_branch;
    };
    at::Tensor d_normed = gradients[0].contiguous();
    for (size_t i = trunk.blocks.size(); i-- > 0;) {
      Products& block = kept->blocks[i];
      const at::Tensor d_fed = through_norm(2 * i + 2, d_normed);
      const bool fresh = trunk.fresh_gradients;
      d_normed = feed_forward_backward(d_fed, kept->norms[2 * i + 1].normed, trunk.blocks[i], block, fresh);
      const at::Tensor d_attended = through_norm(2 * i + 1, d_normed);
      d_normed = attention_backward(d_attended, kept->norms[2 * i].normed, trunk.blocks[i], kept->mask, block, fresh);
      block = {};
    }
    through_norm(0, d_normed);
    sums.finish();
    return {d_sum, d_trunk.modulation, d_trunk.last_modulation, {}};
  }
};

}  // namespace

at::Tensor run_trunk_fused(const Trunk& trunk, const at::Tensor& x, const RowMask& mask) {
  auto kept = c10::make_intrusive<Kept>();
  kept->gradients = at::GradMode::is_enabled();
  kept->trunk = trunk;
  kept->mask = mask;
  const auto given = [](const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; };
  return FusedTrunk::apply(x, given(trunk.modulation), given(trunk.last_modulation), kept);
}

static_assert(std::ranges::all_of(model_sizes, [](const ModelSize& size) {
  return std::max(size.encoder_width, size.decoder_width) <= widest_fused &&
         2 * std::max(size.encoder_blocks, size.decoder_blocks) + 1 <= most_sums;
}));

bool can_fuse(const at::Tensor& x) { return x.scalar_type() == (x.is_cuda() ? at::kBFloat16 : at::kFloat); }

}  // namespace myxtts
