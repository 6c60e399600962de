#include "model/cuda/bfloat16x8.cuh"
#include "train/update.h"

#include <algorithm>

namespace myxtts {
namespace {

constexpr int norm_blocks = 1024;

// What an update is, once the gradient norm is known.
struct Coefficients {
  float done;      // 1, or 0 where the gradient is not finite
  float gradient;  // what clipping leaves of it
  float decay;     // what weight decay leaves of a matrix
  float step;      // learning rate over the first moment's correction
  float size;      // root of the second moment's correction
  float ema;       // how much of the new weights the EMA takes; 0: it is not touched
};

struct Scratch {
  float squares[norm_blocks];
  Coefficients coefficients;
};

template <typename T>
__global__ void __launch_bounds__(block_width) sum_squares(const T* gradients, int64_t elements, Scratch* scratch) {
  float squares = 0;
  const int64_t all = static_cast<int64_t>(gridDim.x) * block_width * pack;
#pragma unroll 4
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x) * pack; i < elements; i += all) {
    const Vec8 values = load(gradients + i);
#pragma unroll
    for (const float value : values.v) squares += value * value;
  }
  squares = block_sum(squares);
  if (threadIdx.x == 0) scratch->squares[blockIdx.x] = squares;
}

__global__ void __launch_bounds__(block_width) decide(UpdateProblem p, Scratch* scratch) {
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < norm_blocks; i += block_width) squares += scratch->squares[i];
  squares = block_sum(squares);
  if (threadIdx.x > 0) return;
  const float norm = sqrtf(squares), done = isfinite(norm) ? 1 : 0;
  *p.scalars.norm = norm;
  const float updates = *p.scalars.updates += done;
  *p.scalars.skipped_total += 1 - done;
  *p.scalars.skipped = (*p.scalars.skipped + 1) * (1 - done);
  const auto& s = p.settings;
  const double count = fmax(1.0, static_cast<double>(updates));
  Coefficients& c = scratch->coefficients;
  c.done = done;
  c.gradient = fminf(1, static_cast<float>(s.clip_norm) / (norm + 1e-6F));
  c.decay = static_cast<float>(1 - *p.scalars.learning_rate * s.weight_decay);
  c.step = static_cast<float>(*p.scalars.learning_rate / (1 - pow(s.beta1, count)));
  c.size = static_cast<float>(sqrt(1 - pow(s.beta2, count)));
  const float decay = fminf(static_cast<float>(s.ema_decay), (1 + updates) / (10 + updates));
  const bool warming_up = updates <= EmaSchedule::warm_up || s.ema_decay < EmaSchedule::slow_decay;
  const bool due = warming_up || fmodf(updates, EmaSchedule::interval) == 0;
  c.ema = due ? 1 - powf(decay, warming_up ? 1 : EmaSchedule::interval) : 0;
}

__device__ void store(float* to, const Vec8& values) {
  reinterpret_cast<float4*>(to)[0] = make_float4(values.v[0], values.v[1], values.v[2], values.v[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(values.v[4], values.v[5], values.v[6], values.v[7]);
}

template <typename T>
__global__ void __launch_bounds__(block_width) update(UpdateProblem p, const Scratch* scratch) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x) * pack;
  if (i >= p.sizes.all) return;
  T* const gradients = static_cast<T*>(p.gradients) + i;
  const Coefficients c = scratch->coefficients;
  const bool overwritten = i < p.sizes.overwritten;
  if (c.done == 0) {
    if (!overwritten) store(gradients, Vec8{});
    return;
  }
  const Vec8 gradient = load(gradients);
  Vec8 master = load(p.state.master + i), first = load(p.state.first_moment + i),
       second = load(p.state.second_moment + i), ema = c.ema > 0 ? load(p.state.ema + i) : Vec8{};
  const auto first_rest = static_cast<float>(1 - p.settings.beta1);
  const auto second_rest = static_cast<float>(1 - p.settings.beta2);
  const auto eps = static_cast<float>(p.settings.eps);
  const float decay = i < p.sizes.matrices ? c.decay : 1;  // no eight is of both: parameters begin at multiples of it
#pragma unroll
  for (int k = 0; k < pack; ++k) {
    const float g = gradient.v[k] * c.gradient;
    first.v[k] += first_rest * (g - first.v[k]);
    second.v[k] += second_rest * (g * g - second.v[k]);
    master.v[k] = master.v[k] * decay - c.step * first.v[k] / (sqrtf(second.v[k]) / c.size + eps);
    ema.v[k] += c.ema * (master.v[k] - ema.v[k]);
  }
  store(p.state.master + i, master);
  store(p.state.first_moment + i, first);
  store(p.state.second_moment + i, second);
  if (c.ema > 0) store(p.state.ema + i, ema);
  if (p.weights != nullptr) store(static_cast<T*>(p.weights) + i, master);
  if (!overwritten) store(gradients, Vec8{});
}

template <typename T>
void run(const UpdateProblem& p, Scratch* scratch, StreamHandle stream) {
  sum_squares<<<norm_blocks, block_width, 0, stream>>>(static_cast<const T*>(p.gradients), p.sizes.all, scratch);
  decide<<<1, block_width, 0, stream>>>(p, scratch);
  const int64_t each = block_width * pack;
  update<T><<<static_cast<unsigned>((p.sizes.all + each - 1) / each), block_width, 0, stream>>>(p, scratch);
}

}  // namespace

size_t update_scratch_bytes() { return sizeof(Scratch); }

void update_on_gpu(const UpdateProblem& p, void* scratch, StreamHandle stream) {
  if (p.half) {
    run<BFloat16>(p, static_cast<Scratch*>(scratch), stream);
  } else {
    run<float>(p, static_cast<Scratch*>(scratch), stream);
  }
}

}  // namespace myxtts
