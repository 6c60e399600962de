#include "model/fused.h"
#include "model/size.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace myxtts {
namespace {

constexpr float rms_eps = 1e-6F;

template <typename T>
const T* of_row(const PerRow<T>& vectors, int64_t row) {
  return vectors.values == nullptr ? nullptr : vectors.values + row * vectors.stride;
}

// Target velocity of the flow, from noise to mel.
float target(float mel, float noise, float sigma_min) { return mel - (1 - sigma_min) * noise; }

// Multipliers of all channels of a position; empty without dropout.
void draw_position(const Dropout& dropout, int64_t row, int64_t position, std::vector<float>& multipliers) {
  float group[dropout_group];
  for (size_t first = 0; first < multipliers.size(); first += dropout_group) {
    draw_dropout(dropout, row, position, static_cast<int64_t>(first) / dropout_group, group);
    std::copy_n(group, dropout_group, multipliers.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace

void dropout_mask_on_cpu(const DropoutMask& p, int64_t first, int64_t end) {
  std::vector<float> multipliers(static_cast<size_t>(p.width));
  for (int64_t i = first; i < end; ++i) {
    draw_position(p.dropout, i / p.positions, i % p.positions, multipliers);
    std::ranges::copy(multipliers, p.multipliers + i * p.width);
  }
}

void add_norm_on_cpu(const AddNorm<float>& p, int64_t first, int64_t end) {
  std::vector<float> kept(p.dropout.key != nullptr ? static_cast<size_t>(p.width) : 0);
  for (int64_t i = first; i < end; ++i) {
    const int64_t row = i / p.positions;
    const float* gate = of_row(p.gate, row);
    const float* scale = of_row(p.scale, row);
    const float* shift = of_row(p.shift, row);
    const float* sum = p.x + i * p.width;
    if (p.branch != nullptr) {
      float* out = p.sum + i * p.width;
      const float* branch = p.branch + i * p.width;
      draw_position(p.dropout, row, i % p.positions, kept);
      for (int64_t c = 0; c < p.width; ++c) {
        const float added = kept.empty() ? branch[c] : branch[c] * kept[static_cast<size_t>(c)];
        out[c] = sum[c] + (gate != nullptr ? gate[c] * added : added);
      }
      sum = out;
    }
    float squares = 0;
    for (int64_t c = 0; c < p.width; ++c) squares += sum[c] * sum[c];
    const float inverse_rms = 1 / std::sqrt(squares / static_cast<float>(p.width) + rms_eps);
    p.inverse_rms[i] = inverse_rms;
    float* normed = p.normed + i * p.width;
    for (int64_t c = 0; c < p.width; ++c) {
      normed[c] = sum[c] * inverse_rms * (p.scale_base + scale[c]) + (shift != nullptr ? shift[c] : 0);
    }
  }
}

void add_norm_backward_on_cpu(const AddNormBackward<float>& b, int64_t row) {
  const AddNorm<float>& p = b.forward;
  const float* gate = of_row(p.gate, row);
  const float* scale = of_row(p.scale, row);
  float* d_scale = b.parts + row * 3 * p.width;
  float* d_shift = d_scale + p.width;
  float* d_gate = d_shift + p.width;
  std::fill_n(d_scale, 3 * p.width, 0.0F);
  std::vector<float> kept(p.dropout.key != nullptr ? static_cast<size_t>(p.width) : 0);
  for (int64_t i = row * p.positions; i < (row + 1) * p.positions; ++i) {
    const float* sum = p.sum + i * p.width;
    const float* d_normed = b.d_normed + i * p.width;
    const float inverse_rms = p.inverse_rms[i];
    float mean_dot = 0;
    for (int64_t c = 0; c < p.width; ++c) mean_dot += d_normed[c] * (p.scale_base + scale[c]) * sum[c];
    mean_dot *= inverse_rms * inverse_rms / static_cast<float>(p.width);
    float* d_x = b.d_x + i * p.width;
    for (int64_t c = 0; c < p.width; ++c) {
      const float d_residual = b.d_sum != nullptr ? b.d_sum[i * p.width + c] : 0;
      d_x[c] = inverse_rms * (d_normed[c] * (p.scale_base + scale[c]) - sum[c] * mean_dot) + d_residual;
      d_scale[c] += d_normed[c] * sum[c] * inverse_rms;
      d_shift[c] += d_normed[c];
    }
    if (p.branch == nullptr || (gate == nullptr && kept.empty())) continue;
    const float* branch = p.branch + i * p.width;
    draw_position(p.dropout, row, i % p.positions, kept);
    for (int64_t c = 0; c < p.width; ++c) {
      const float d_added = kept.empty() ? d_x[c] : d_x[c] * kept[static_cast<size_t>(c)];
      d_gate[c] += d_added * branch[c];
      b.d_branch[i * p.width + c] = gate != nullptr ? d_added * gate[c] : d_added;
    }
  }
}

void sum_parts_on_cpu(const SumParts<float>& p) {
  for (int norm = 0; norm < p.norms; ++norm) {
    for (int part = 0; part < 3; ++part) {
      const auto& target = p.list[norm].targets[part];
      if (target.to == nullptr) continue;
      for (int64_t row = 0; row < p.rows; ++row) {
        float* to = target.to + row * target.stride;
        if (target.stride != 0) std::fill_n(to, p.width, 0.0F);
        for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
          const float* from = p.list[norm].parts + ((row * p.chunks + chunk) * 3 + part) * p.width;
          for (int64_t c = 0; c < p.width; ++c) to[c] += from[c];
        }
      }
    }
  }
}

void rotary_on_cpu(const Rotary<float>& p, int64_t first, int64_t end) {
  constexpr int64_t half = head_width / 2;
  for (int64_t i = first; i < end; ++i) {
    const float* cosines = p.cosines + i % p.positions * half;
    const float* sines = p.sines + i % p.positions * half;
    for (int64_t head = 0; head < 2 * p.heads; ++head) {  // queries, then keys
      float* low = p.qkv + (i * 3 * p.heads + head) * head_width;
      float* high = low + half;
      for (int64_t c = 0; c < half; ++c) {
        const float a = low[c], b = high[c];
        low[c] = a * cosines[c] - b * sines[c];
        high[c] = b * cosines[c] + a * sines[c];
      }
    }
  }
}

void rotary_backward_on_cpu(const RotaryBackward<float>& b, int64_t first, int64_t end) {
  constexpr int64_t half = head_width / 2;
  const int64_t width = b.to.heads * head_width;
  for (int64_t i = first; i < end; ++i) {
    const float* cosines = b.to.cosines + i % b.to.positions * half;
    const float* sines = b.to.sines + i % b.to.positions * half;
    float* to = b.to.qkv + i * 3 * width;
    for (const float* from : {b.d_q + i * width, b.d_k + i * width}) {
      for (int64_t head = 0; head < width; head += head_width) {
        for (int64_t c = 0; c < half; ++c) {
          const float low = from[head + c], high = from[head + half + c];
          to[head + c] = low * cosines[c] + high * sines[c];
          to[head + half + c] = high * cosines[c] - low * sines[c];
        }
      }
      to += width;
    }
    std::copy_n(b.d_v + i * width, width, to);
  }
}

void flow_input_on_cpu(const FlowInput<float>& p, int64_t row) {
  const float time = p.time[row];
  double squares = 0;
  for (int64_t frame = row * p.frames; frame < (row + 1) * p.frames; ++frame) {
    const int32_t token = p.token_of_frame[frame];
    const float* mel = p.mel + frame * p.n_mels;
    const float* noise = p.noise + frame * p.n_mels;
    const float* mu = token < 0 ? nullptr : p.mu + (row * p.tokens + token) * p.n_mels;
    float* input = p.input + frame * 2 * p.n_mels;
    for (int64_t m = 0; m < p.n_mels; ++m) {
      input[m] = (1 - (1 - p.sigma_min) * time) * noise[m] + time * mel[m];
      input[p.n_mels + m] = mu != nullptr ? mu[m] : 0;
      if (mu != nullptr) squares += static_cast<double>((mel[m] - mu[m]) * (mel[m] - mu[m]));
    }
  }
  p.squares[row] = static_cast<float>(squares);
}

void flow_input_backward_on_cpu(const FlowInputBackward<float>& b, int64_t row) {
  const FlowInput<float>& p = b.forward;
  std::fill_n(b.d_mu + row * p.tokens * p.n_mels, p.tokens * p.n_mels, 0.0F);
  for (int64_t frame = row * p.frames; frame < (row + 1) * p.frames; ++frame) {
    const int32_t token = p.token_of_frame[frame];
    if (token < 0) continue;
    const float* mel = p.mel + frame * p.n_mels;
    const float* mu = p.mu + (row * p.tokens + token) * p.n_mels;
    const float* d_input = b.d_input + (frame * 2 + 1) * p.n_mels;
    float* d_mu = b.d_mu + (row * p.tokens + token) * p.n_mels;
    for (int64_t m = 0; m < p.n_mels; ++m) d_mu[m] += d_input[m] + *b.d_squares * 2 * (mu[m] - mel[m]);
  }
}

void flow_error_on_cpu(const FlowError<float>& p, int64_t row) {
  double squares = 0;
  for (int64_t frame = row * p.frames; frame < (row + 1) * p.frames; ++frame) {
    if (p.token_of_frame[frame] < 0) continue;
    for (int64_t i = frame * p.n_mels; i < (frame + 1) * p.n_mels; ++i) {
      const float error = p.flow[i] - target(p.mel[i], p.noise[i], p.sigma_min);
      squares += static_cast<double>(error * error);
    }
  }
  p.squares[row] = static_cast<float>(squares);
}

void flow_error_backward_on_cpu(const FlowError<float>& p, int64_t row) {
  for (int64_t frame = row * p.frames; frame < (row + 1) * p.frames; ++frame) {
    const bool valid = p.token_of_frame[frame] >= 0;
    for (int64_t i = frame * p.n_mels; i < (frame + 1) * p.n_mels; ++i) {
      p.d_flow[i] = valid ? *p.d_squares * 2 * (p.flow[i] - target(p.mel[i], p.noise[i], p.sigma_min)) : 0;
    }
  }
}

}  // namespace myxtts
