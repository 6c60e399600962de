#include "model/condition.h"

#include "model/condition_kernels.h"
#include "model/torch_stream.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace myxtts {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
const T* read_from(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}
BFloat16* write_to(at::Tensor& tensor) { return static_cast<BFloat16*>(tensor.mutable_data_ptr()); }

ConditionProblem problem_of(const variable_list& t, double dropout) {
  ConditionProblem problem;
  problem.rows = t[4].size(0), problem.heard = t[2].size(0), problem.frames = t[2].size(1);
  problem.speakers = t[0].size(0), problem.languages = t[1].size(0);
  problem.speaker_table = read_from<BFloat16>(t[0]), problem.language_table = read_from<BFloat16>(t[1]);
  problem.references = read_from<BFloat16>(t[2]), problem.reference_lengths = read_from<int32_t>(t[3]);
  problem.speaker = read_from<int32_t>(t[4]), problem.language = read_from<int32_t>(t[5]);
  problem.kept = read_from<float>(t[6]), problem.dropout = static_cast<float>(dropout);
  return problem;
}

struct ConditionFunction : torch::autograd::Function<ConditionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& speaker_table, const at::Tensor& language_table,
                            const at::Tensor& references, const at::Tensor& reference_lengths,
                            const at::Tensor& speaker, const at::Tensor& language, const at::Tensor& kept,
                            double dropout) {
    const int64_t width = speaker_table.size(1);
    at::Tensor sums = at::empty({references.size(0), width}, speaker_table.options()),
               condition = at::empty({speaker.size(0), width}, speaker_table.options());
    const variable_list tensors = {speaker_table.contiguous(), language_table.contiguous(),
                                   references.contiguous(),    reference_lengths.contiguous(),
                                   speaker.contiguous(),       language.contiguous(),
                                   kept.contiguous(),          sums};
    context->save_for_backward(tensors);
    context->saved_data["dropout"] = dropout;
    condition_on_gpu(problem_of(tensors, dropout), write_to(condition), write_to(sums),
                     current_stream(condition.get_device()));
    return condition;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list tensors = context->get_saved_variables();
    const at::Tensor gradient = gradients.front().contiguous();
    at::Tensor speakers = at::empty_like(tensors[0]), languages = at::empty_like(tensors[1]),
               references = at::empty_like(tensors[2]);
    condition_backward_on_gpu(problem_of(tensors, context->saved_data["dropout"].toDouble()),
                              read_from<BFloat16>(gradient), read_from<BFloat16>(tensors[7]),
                              {write_to(speakers), write_to(languages), write_to(references)},
                              current_stream(gradient.get_device()));
    return {speakers, languages, references, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor unit_rows(const at::Tensor& rows) {
  constexpr double eps = 1e-6;
  return at::rms_norm(rows, {rows.size(-1)}, {}, eps);
}

at::Tensor pool_frames(const at::Tensor& frames, const at::Tensor& lengths) {
  // A product, so that its gradient is one too. How many frames there are does not change a unit.
  const at::Tensor valid = at::arange(frames.size(1), lengths.options()) < lengths.unsqueeze(1);
  return unit_rows(at::bmm(valid.to(frames.scalar_type()).unsqueeze(1), frames).squeeze(1));
}

at::Tensor rows_of(const at::Tensor& table, const at::Tensor& numbers) {
  const at::Tensor one_hot = numbers.unsqueeze(-1) == at::arange(table.size(0), numbers.options());
  return at::matmul(one_hot.to(table.scalar_type()), table);
}

at::Tensor choose_condition(const ConditionInput& input, bool fused) {
  if (fused && input.speaker_table.is_cuda() && input.speaker_table.scalar_type() == at::kBFloat16 &&
      input.speaker_table.size(1) == condition_kernel_width) {
    return ConditionFunction::apply(input.speaker_table, input.language_table, input.references,
                                    input.reference_lengths, input.speaker, input.language, input.kept, input.dropout);
  }
  const int64_t rows = input.speaker.size(0), missing = rows - input.references.size(0);
  // A row without a condition has nobody's number and no reference, which makes zeros.
  const at::Tensor dropped = input.kept < input.dropout;
  const auto known = [&](const at::Tensor& numbers) { return numbers.masked_fill(dropped, -1); };
  const at::Tensor from_table = unit_rows(rows_of(input.speaker_table, known(input.speaker)));
  const at::Tensor by_reference =
      at::constant_pad_nd(input.reference_lengths, {0, missing}).masked_fill(dropped, 0) > 0;
  const at::Tensor references =
      at::constant_pad_nd(pool_frames(input.references, input.reference_lengths), {0, 0, 0, missing});
  const at::Tensor speaker = at::where(by_reference.unsqueeze(1), references, from_table);
  return speaker + unit_rows(rows_of(input.language_table, known(input.language)));
}

}  // namespace myxtts
