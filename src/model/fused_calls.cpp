#include "model/fused_calls.h"

#include "model/attention.h"
#include "model/conv.h"
#include "model/fused.h"
#include "model/size.h"
#include "model/torch_stream.h"

#include <functional>
#include <type_traits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/custom_function.h>

namespace myxtts {
namespace {

template <typename T>
T* data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}

int64_t row_stride(const at::Tensor& vectors) {
  return vectors.defined() && vectors.dim() == 2 ? vectors.stride(0) : 0;
}

template <typename T>
PerRow<T> per_row(const at::Tensor& vectors) {
  return {data<const T>(vectors), row_stride(vectors)};
}

// Calls `work` with a value of the type that the kernels of the tensor's device take.
template <typename Work>
void on_device_of(const at::Tensor& x, const Work& work) {
  if (!x.is_cuda()) return work(float{});
  const c10::DeviceGuard guard(x.device());
  work(BFloat16{});
}

template <typename T>
constexpr bool on_gpu = std::is_same_v<T, BFloat16>;

// Positions per task: enough to amortise a thread.
constexpr int64_t grain = 64;

void parallel_ranges(int64_t count, int64_t share, const std::function<void(int64_t, int64_t)>& work) {
  at::parallel_for(0, count, share, work);
}

void parallel_each(int64_t count, const std::function<void(int64_t)>& work) {
  at::parallel_for(0, count, 1, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) work(i);
  });
}

template <typename T>
AddNorm<T> add_norm_of(const at::Tensor& sum, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
                       const at::Tensor& inverse_rms) {
  AddNorm<T> problem;
  problem.rows = sum.size(0), problem.positions = sum.size(1), problem.width = sum.size(2);
  problem.branch = data<const T>(branch);
  problem.gate = per_row<T>(gate);
  problem.scale = per_row<T>(scale);
  problem.scale_base = scale.dim() == 2 ? 1 : 0;  // modulation scales are relative to 1
  problem.sum = data<T>(sum);
  problem.inverse_rms = data<float>(inverse_rms);
  return problem;
}

}  // namespace

Dropout dropout_at(const DropoutKey& key, uint32_t site) {
  if (!key.on()) return {};
  return {key.key.const_data_ptr<int64_t>(), site, dropout_threshold(key.rate), static_cast<float>(1 / (1 - key.rate)),
          key.rows};
}

at::Tensor dropout_multipliers(const at::Tensor& x, const DropoutKey& key, uint32_t site) {
  at::Tensor multipliers = at::empty(x.sizes(), x.options().dtype(at::kFloat).requires_grad(false));
  const DropoutMask problem{x.size(0), x.size(1), x.size(2), dropout_at(key, site), data<float>(multipliers)};
  if (x.is_cuda()) {
    const c10::DeviceGuard guard(x.device());
    dropout_mask_on_gpu(problem, current_stream(x.get_device()));
  } else {
    parallel_ranges(problem.rows * problem.positions, grain,
                    [&](int64_t first, int64_t end) { dropout_mask_on_cpu(problem, first, end); });
  }
  return multipliers;
}

void add_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
              const at::Tensor& shift, const at::Tensor& sum, const at::Tensor& normed, const at::Tensor& inverse_rms,
              const Dropout& dropout) {
  on_device_of(x, [&](auto type) {
    using T = decltype(type);
    AddNorm<T> problem = add_norm_of<T>(sum, branch, gate, scale, inverse_rms);
    problem.x = data<const T>(x);
    problem.dropout = dropout;
    problem.shift = per_row<T>(shift);
    problem.normed = data<T>(normed);
    if constexpr (on_gpu<T>) {
      add_norm_on_gpu(problem, current_stream(x.get_device()));
    } else {
      parallel_ranges(problem.rows * problem.positions, grain,
                      [&](int64_t first, int64_t end) { add_norm_on_cpu(problem, first, end); });
    }
  });
}

void add_norm_backward(const at::Tensor& sum, const at::Tensor& branch, const at::Tensor& gate, const at::Tensor& scale,
                       const at::Tensor& inverse_rms, const at::Tensor& d_normed, const at::Tensor& d_sum,
                       const AddNormGradients& results, NormSums& sums, const Dropout& dropout) {
  on_device_of(sum, [&](auto type) {
    using T = decltype(type);
    AddNormBackward<T> problem;
    problem.forward = add_norm_of<T>(sum, branch, gate, scale, inverse_rms);
    problem.forward.dropout = dropout;
    problem.d_normed = data<const T>(d_normed);
    problem.d_sum = data<const T>(d_sum);
    problem.d_x = data<T>(results.d_x);
    problem.d_branch = data<T>(results.d_branch);
    const int64_t rows = sum.size(0), width = sum.size(2);
    if constexpr (on_gpu<T>) problem.chunks = add_norm_chunks(rows, sum.size(1));
    const at::Tensor parts = at::empty({rows, problem.chunks, 3, width}, inverse_rms.options());
    problem.parts = data<float>(parts);
    if constexpr (on_gpu<T>) {
      add_norm_backward_on_gpu(problem, current_stream(sum.get_device()));
    } else {
      parallel_each(rows, [&](int64_t row) { add_norm_backward_on_cpu(problem, row); });
    }
    sums.add(parts, results);
  });
}

void NormSums::add(const at::Tensor& parts, const AddNormGradients& results) {
  norms_.push_back({parts, results.d_scale, results.d_shift, results.d_gate});
  if (norms_.size() == max_norms) finish();
}

void NormSums::finish() {
  if (norms_.empty()) return;
  const at::Tensor& first = norms_.front().parts;
  on_device_of(first, [&](auto type) {
    using T = decltype(type);
    SumParts<T> problem;
    problem.rows = first.size(0), problem.chunks = first.size(1), problem.width = first.size(3);
    for (const Norm& norm : norms_) {
      const auto target = [](const at::Tensor& to) -> typename SumParts<T>::Target {
        return {data<T>(to), row_stride(to)};
      };
      problem.list[problem.norms++] = {data<const float>(norm.parts),
                                       {target(norm.d_scale), target(norm.d_shift), target(norm.d_gate)}};
    }
    if constexpr (on_gpu<T>) {
      sum_parts_on_gpu(problem, current_stream(first.get_device()));
    } else {
      sum_parts_on_cpu(problem);
    }
  });
  norms_.clear();
}

namespace {

ConvShape conv_shape(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel) {
  return {x.size(0), x.size(1), x.size(2), kernel, data<const int32_t>(lengths)};
}

}  // namespace

at::Tensor fused_unfold(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel) {
  if (kernel == 1) return x.view({-1, x.size(2)});
  at::Tensor unfolded = at::empty({x.size(0) * x.size(1), kernel * x.size(2)}, x.options());
  on_device_of(x, [&](auto type) {
    using T = decltype(type);
    const Unfold<T> problem{conv_shape(x, lengths, kernel), data<const T>(x), data<T>(unfolded)};
    if constexpr (on_gpu<T>) {
      unfold_on_gpu(problem, current_stream(x.get_device()));
    } else {
      parallel_each(x.size(0), [&](int64_t row) { unfold_on_cpu(problem, row); });
    }
  });
  return unfolded;
}

at::Tensor fused_unfold_backward(const at::Tensor& d_unfolded, const at::Tensor& x, const at::Tensor& lengths) {
  const int64_t kernel = d_unfolded.size(1) / x.size(2);
  if (kernel == 1) return d_unfolded.view_as(x);
  at::Tensor d_x = at::empty_like(x);
  on_device_of(x, [&](auto type) {
    using T = decltype(type);
    const UnfoldBackward<T> problem{conv_shape(x, lengths, kernel), data<const T>(d_unfolded), data<T>(d_x)};
    if constexpr (on_gpu<T>) {
      unfold_backward_on_gpu(problem, current_stream(x.get_device()));
    } else {
      parallel_each(x.size(0), [&](int64_t row) { unfold_backward_on_cpu(problem, row); });
    }
  });
  return d_x;
}

at::Tensor fused_depthwise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths) {
  at::Tensor y = at::empty_like(x);
  on_device_of(x, [&](auto type) {
    using T = decltype(type);
    const Depthwise<T> problem{conv_shape(x, lengths, weight.size(0)), data<const T>(weight), data<const T>(x),
                               data<T>(y)};
    if constexpr (on_gpu<T>) {
      depthwise_on_gpu(problem, current_stream(x.get_device()));
    } else {
      parallel_each(x.size(0), [&](int64_t row) { depthwise_on_cpu(problem, row); });
    }
  });
  return y;
}

at::Tensor fused_depthwise_backward(const at::Tensor& d_y, const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& lengths, bool overwrite) {
  at::Tensor d_x = at::empty_like(x);
  on_device_of(x, [&](auto type) {
    using T = decltype(type);
    DepthwiseBackward<T> problem{conv_shape(x, lengths, weight.size(0)), data<const T>(weight), data<const T>(x),
                                 data<const T>(d_y), data<T>(d_x)};
    if constexpr (on_gpu<T>) problem.chunks = depthwise_chunks(x.size(0), x.size(1));
    const at::Tensor parts =
        at::empty({x.size(0) * problem.chunks, weight.size(0), weight.size(1)}, x.options().dtype(at::kFloat));
    problem.parts = data<float>(parts);
    if constexpr (on_gpu<T>) {
      depthwise_backward_on_gpu(problem, current_stream(x.get_device()));
    } else {
      parallel_each(x.size(0), [&](int64_t row) { depthwise_backward_on_cpu(problem, row); });
    }
    const at::Tensor d_weight = parts.sum(0);
    overwrite ? weight.grad().copy_(d_weight) : weight.grad().add_(d_weight);
  });
  return d_x;
}

namespace {

template <typename T>
Rotary<T> rotary_of(const at::Tensor& qkv, const RowMask& mask) {
  const at::Tensor cosines = mask.rotary.select(0, 0), sines = mask.rotary.select(0, 1);
  return {qkv.size(0), qkv.size(1), qkv.size(3), data<T>(qkv), data<const float>(cosines), data<const float>(sines)};
}

}  // namespace

void apply_rotary(const at::Tensor& qkv, const RowMask& mask) {
  on_device_of(qkv, [&](auto type) {
    using T = decltype(type);
    const Rotary<T> problem = rotary_of<T>(qkv, mask);
    if constexpr (on_gpu<T>) {
      rotary_on_gpu(problem, current_stream(qkv.get_device()));
    } else {
      parallel_ranges(problem.rows * problem.positions, grain,
                      [&](int64_t first, int64_t end) { rotary_on_cpu(problem, first, end); });
    }
  });
}

void rotary_backward(const at::Tensor& d_qkv, const at::Tensor& d_q, const at::Tensor& d_k, const at::Tensor& d_v,
                     const RowMask& mask) {
  on_device_of(d_qkv, [&](auto type) {
    using T = decltype(type);
    const RotaryBackward<T> problem{rotary_of<T>(d_qkv, mask), data<const T>(d_q), data<const T>(d_k),
                                    data<const T>(d_v)};
    if constexpr (on_gpu<T>) {
      rotary_backward_on_gpu(problem, current_stream(d_qkv.get_device()));
    } else {
      parallel_ranges(problem.to.rows * problem.to.positions, grain,
                      [&](int64_t first, int64_t end) { rotary_backward_on_cpu(problem, first, end); });
    }
  });
}

namespace {

Attention attention_of(const at::Tensor& qkv, const RowMask& mask, const at::Tensor& output,
                       const at::Tensor& neg_lse) {
  return {qkv.size(0),
          qkv.size(1),
          qkv.size(3),
          data<const int32_t>(mask.lengths),
          data<const BFloat16>(qkv),
          data<BFloat16>(output),
          data<float>(neg_lse)};
}

}  // namespace

at::Tensor empty_neg_lse(const at::Tensor& qkv) {
  return at::empty({qkv.size(0), qkv.size(3), attention_padded_positions(qkv.size(1))},
                   qkv.options().dtype(at::kFloat));
}

void fused_attention(const at::Tensor& qkv, const RowMask& mask, const at::Tensor& output, const at::Tensor& neg_lse) {
  const c10::DeviceGuard guard(qkv.device());
  attention_on_gpu(attention_of(qkv, mask, output, neg_lse), current_stream(qkv.get_device()));
}

void fused_attention_backward(const at::Tensor& qkv, const RowMask& mask, const at::Tensor& output,
                              const at::Tensor& neg_lse, const at::Tensor& d_output, const at::Tensor& d_qkv) {
  const c10::DeviceGuard guard(qkv.device());
  const at::Tensor neg_delta = at::empty_like(neg_lse);
  attention_backward_on_gpu({attention_of(qkv, mask, output, neg_lse), data<const BFloat16>(d_output),
                             data<const float>(mask.rotary.select(0, 0)), data<const float>(mask.rotary.select(0, 1)),
                             data<float>(neg_delta), data<BFloat16>(d_qkv)},
                            current_stream(qkv.get_device()));
}

void gelu_backward(const at::Tensor& before, at::Tensor& gradient) {
  if (!before.is_cuda()) {
    at::gelu_backward_out(gradient, gradient, before, "tanh");
    return;
  }
  const c10::DeviceGuard guard(before.device());
  gelu_backward_on_gpu({before.numel(), data<const BFloat16>(before), data<BFloat16>(gradient)},
                       current_stream(before.get_device()));
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
int64_t chunks_of(const at::Tensor& mel) {
  if constexpr (on_gpu<T>) {
    return flow_chunks(mel.size(0), mel.size(1));
  } else {
    return mel.size(0);
  }
}

template <typename T>
FlowInput<T> flow_input_of(const FlowFrames& frames, const at::Tensor& mu) {
  FlowInput<T> problem;
  problem.rows = frames.mel.size(0), problem.frames = frames.mel.size(1), problem.n_mels = frames.mel.size(2);
  problem.tokens = mu.size(1);
  problem.mel = data<const float>(frames.mel);
  problem.noise = data<const float>(frames.noise);
  problem.time = data<const float>(frames.time);
  problem.mu = data<const float>(mu);
  problem.token_of_frame = data<const int32_t>(frames.token_of_frame);
  problem.sigma_min = static_cast<float>(frames.sigma_min);
  problem.chunks = chunks_of<T>(frames.mel);
  return problem;
}

template <typename T>
FlowError<T> flow_error_of(const FlowFrames& frames, const at::Tensor& flow) {
  FlowError<T> problem;
  problem.rows = frames.mel.size(0), problem.frames = frames.mel.size(1), problem.n_mels = frames.mel.size(2);
  problem.mel = data<const float>(frames.mel);
  problem.noise = data<const float>(frames.noise);
  problem.token_of_frame = data<const int32_t>(frames.token_of_frame);
  problem.sigma_min = static_cast<float>(frames.sigma_min);
  problem.flow = data<const T>(flow);
  problem.chunks = chunks_of<T>(frames.mel);
  return problem;
}

FlowFrames frames_from(const variable_list& saved, double sigma_min) {
  return {saved[1], saved[2], saved[3], saved[4], sigma_min};
}

struct UnfoldFunction : torch::autograd::Function<UnfoldFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& lengths, int64_t kernel) {
    context->save_for_backward({x, lengths});
    return fused_unfold(x.contiguous(), lengths, kernel).view({x.size(0), x.size(1), kernel * x.size(2)});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& gradient = gradients.front();
    return {fused_unfold_backward(gradient.contiguous().view({-1, gradient.size(2)}), saved[0], saved[1]), {}, {}};
  }
};

struct DecoderInputFunction : torch::autograd::Function<DecoderInputFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& mu, const at::Tensor& mel,
                               const at::Tensor& noise, const at::Tensor& time, const at::Tensor& token_of_frame,
                               double sigma_min) {
    const FlowFrames frames{mel, noise, time, token_of_frame, sigma_min};
    at::Tensor input, squares;
    on_device_of(mel, [&](auto type) {
      using T = decltype(type);
      FlowInput<T> problem = flow_input_of<T>(frames, mu);
      input = at::empty({problem.rows, problem.frames, 2 * problem.n_mels},
                        mel.options().dtype(on_gpu<T> ? at::kBFloat16 : at::kFloat));
      squares = at::empty({problem.chunks}, mel.options());
      problem.input = data<T>(input), problem.squares = data<float>(squares);
      if constexpr (on_gpu<T>) {
        flow_input_on_gpu(problem, current_stream(mel.get_device()));
      } else {
        parallel_each(problem.rows, [&](int64_t row) { flow_input_on_cpu(problem, row); });
      }
    });
    context->save_for_backward({mu, mel, noise, time, token_of_frame});
    context->saved_data["sigma_min"] = sigma_min;
    return {input, squares.sum()};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const FlowFrames frames = frames_from(saved, context->saved_data["sigma_min"].toDouble());
    at::Tensor d_mu = at::empty_like(saved[0]);
    const at::Tensor d_input = gradients[0].contiguous(), d_squares = gradients[1].contiguous();
    on_device_of(frames.mel, [&](auto type) {
      using T = decltype(type);
      const FlowInputBackward<T> problem{flow_input_of<T>(frames, saved[0]), data<const T>(d_input),
                                         data<const float>(d_squares), data<float>(d_mu)};
      if constexpr (on_gpu<T>) {
        flow_input_backward_on_gpu(problem, current_stream(d_mu.get_device()));
      } else {
        parallel_each(problem.forward.rows, [&](int64_t row) { flow_input_backward_on_cpu(problem, row); });
      }
    });
    return {d_mu, {}, {}, {}, {}, {}};
  }
};

struct FlowSquaredErrorFunction : torch::autograd::Function<FlowSquaredErrorFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& flow, const at::Tensor& mel,
                            const at::Tensor& noise, const at::Tensor& token_of_frame, double sigma_min) {
    const FlowFrames frames{mel, noise, {}, token_of_frame, sigma_min};
    at::Tensor squares;
    on_device_of(mel, [&](auto type) {
      using T = decltype(type);
      FlowError<T> problem = flow_error_of<T>(frames, flow);
      squares = at::empty({problem.chunks}, mel.options());
      problem.squares = data<float>(squares);
      if constexpr (on_gpu<T>) {
        flow_error_on_gpu(problem, current_stream(mel.get_device()));
      } else {
        parallel_each(problem.rows, [&](int64_t row) { flow_error_on_cpu(problem, row); });
      }
    });
    context->save_for_backward({flow, mel, noise, {}, token_of_frame});
    context->saved_data["sigma_min"] = sigma_min;
    return squares.sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const FlowFrames frames = frames_from(saved, context->saved_data["sigma_min"].toDouble());
    at::Tensor d_flow = at::empty_like(saved[0]);
    const at::Tensor d_squares = gradients[0].contiguous();
    on_device_of(frames.mel, [&](auto type) {
      using T = decltype(type);
      FlowError<T> problem = flow_error_of<T>(frames, saved[0]);
      problem.d_squares = data<const float>(d_squares);
      problem.d_flow = data<T>(d_flow);
      if constexpr (on_gpu<T>) {
        flow_error_backward_on_gpu(problem, current_stream(d_flow.get_device()));
      } else {
        parallel_each(problem.rows, [&](int64_t row) { flow_error_backward_on_cpu(problem, row); });
      }
    });
    return {d_flow, {}, {}, {}, {}};
  }
};

}  // namespace

DecoderInput decoder_input(const FlowFrames& frames, const at::Tensor& mu) {
  const variable_list made =
      DecoderInputFunction::apply(mu, frames.mel, frames.noise, frames.time, frames.token_of_frame, frames.sigma_min);
  return {made[0], made[1]};
}

at::Tensor flow_squared_error(const FlowFrames& frames, const at::Tensor& flow) {
  return FlowSquaredErrorFunction::apply(flow, frames.mel, frames.noise, frames.token_of_frame, frames.sigma_min);
}

at::Tensor unfold_positions_fused(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel) {
  return UnfoldFunction::apply(x, lengths, kernel);
}

}  // namespace myxtts
