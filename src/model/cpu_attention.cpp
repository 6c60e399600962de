#include "model/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

// The weights of so many queries are held at a time: [heads, queries_at_once, length].
constexpr int64_t queries_at_once = 1024;

// One row's valid positions as [heads, length, head_width].
at::Tensor heads_of(const at::Tensor& x, int64_t row, int64_t length) {
  return x.select(0, row).narrow(0, 0, length).transpose(0, 1);
}

struct Row {
  at::Tensor scaled_q, k, v;
};

double scale_of(const at::Tensor& qkv) { return 1 / std::sqrt(static_cast<double>(qkv.size(4))); }

Row row_of(const at::Tensor& qkv, int64_t row, int64_t length) {
  const auto part = [&](int64_t number) { return heads_of(qkv.select(2, number), row, length); };
  Row made;
  made.scaled_q = part(0) * scale_of(qkv);
  made.k = part(1), made.v = part(2);
  return made;
}

// Of `count` queries from `first` on: [heads, count, length].
at::Tensor weights_of(const Row& row, int64_t first, int64_t count) {
  return at::softmax(at::bmm(row.scaled_q.narrow(1, first, count), row.k.transpose(1, 2)), -1);
}

void each_row(const at::Tensor& lengths, const std::function<void(int64_t, int64_t)>& work) {
  for (int64_t row = 0; row < lengths.size(0); ++row) {
    if (const int32_t length = lengths.const_data_ptr<int32_t>()[row]; length > 0) work(row, length);
  }
}

at::Tensor zeros_of(const at::Tensor& qkv) {
  return at::zeros({qkv.size(0), qkv.size(1), qkv.size(3), qkv.size(4)}, qkv.options());
}

}  // namespace

at::Tensor cpu_attention(const at::Tensor& qkv, const at::Tensor& lengths) {
  at::Tensor output = zeros_of(qkv);
  each_row(lengths, [&](int64_t row, int64_t length) {
    const Row of = row_of(qkv, row, length);
    for (int64_t first = 0; first < length; first += queries_at_once) {
      const int64_t count = std::min(queries_at_once, length - first);
      heads_of(output, row, length).narrow(1, first, count).copy_(at::bmm(weights_of(of, first, count), of.v));
    }
  });
  return output;
}

AttentionGradients cpu_attention_backward(const at::Tensor& qkv, const at::Tensor& lengths,
                                          const at::Tensor& d_output) {
  AttentionGradients d{zeros_of(qkv), zeros_of(qkv), zeros_of(qkv)};
  each_row(lengths, [&](int64_t row, int64_t length) {
    const Row of = row_of(qkv, row, length);
    const at::Tensor weights = weights_of(of, 0, length), d_out = heads_of(d_output, row, length),
                     d_weights = at::bmm(d_out, of.v.transpose(1, 2)),
                     d_scores = at::_softmax_backward_data(d_weights, weights, -1, at::kFloat);
    heads_of(d.d_v, row, length).copy_(at::bmm(weights.transpose(1, 2), d_out));
    heads_of(d.d_k, row, length).copy_(at::bmm(d_scores.transpose(1, 2), of.scaled_q));
    heads_of(d.d_q, row, length).copy_(at::bmm(d_scores, of.k).mul_(scale_of(qkv)));
  });
  return d;
}

}  // namespace myxtts
