#include "features/cpu/lane_fft.h"

#include <cmath>
#include <numbers>

namespace myxtts {
namespace {

template <typename Scalar>
void push_turn(std::vector<Scalar>& twiddles, double angle) {
  twiddles.push_back(static_cast<Scalar>(std::cos(angle)));
  twiddles.push_back(static_cast<Scalar>(std::sin(angle)));
}

}  // namespace

template <typename Scalar>
std::vector<FftPass<Scalar>> plan_fft(int points) {
  std::vector<FftPass<Scalar>> passes;
  int length = points, stride = 1;
  while (length > 1) {
    int radix = 2;
    for (const int candidate : {8, 5, 3, 4}) {
      if (length % candidate == 0) {
        radix = candidate;
        break;
      }
    }
    const int groups = length / radix;
    FftPass<Scalar> pass{radix, groups, stride, {}};
    for (int p = 0; p < groups; ++p) {
      for (int j = 1; j < radix; ++j) push_turn(pass.twiddles, -2.0 * std::numbers::pi * p * j / length);
    }
    passes.push_back(std::move(pass));
    length = groups;
    stride *= radix;
  }
  return passes;
}

template <typename Scalar>
std::vector<Scalar> untangling_turns(int n_fft) {
  std::vector<Scalar> twiddles;
  for (int k = 0; k <= n_fft / 4; ++k) push_turn(twiddles, -2.0 * std::numbers::pi * k / n_fft);
  return twiddles;
}

template std::vector<FftPass<float>> plan_fft(int);
template std::vector<FftPass<double>> plan_fft(int);
template std::vector<float> untangling_turns(int);
template std::vector<double> untangling_turns(int);

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

}  // namespace myxtts
