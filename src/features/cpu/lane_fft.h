// Tables of the CPU FFT, which transforms eight frames at a time, one per vector lane. The FFT itself (lane_fft.inc) is
// compiled for AVX2 and for any CPU; without FMA contraction both round alike.
#pragma once

#include <cstddef>
#include <vector>

namespace myxtts {

constexpr int mel_lanes = 8;
constexpr size_t scratch_alignment = 64;  // bytes

// One value for each of eight frames.
struct alignas(32) EightFloats {
  float lane[mel_lanes] = {};
};

// One Stockham pass: `radix` inputs `stride * groups` apart become `radix` outputs `stride` apart.
template <typename Scalar>
struct FftPass {
  int radix = 0;
  int groups = 0;
  int stride = 0;
  std::vector<Scalar> twiddles;  // [groups][radix - 1] of (cos, sin)
};

// Complex FFT; `points` may only have the prime factors 2, 3 and 5. For float and double.
template <typename Scalar>
std::vector<FftPass<Scalar>> plan_fft(int points);

// (cos, sin) of bins 0 .. n_fft / 4: twiddles that turn a complex FFT of n_fft / 2 into a real FFT of n_fft.
template <typename Scalar>
std::vector<Scalar> untangling_turns(int n_fft);

bool has_avx2();

}  // namespace myxtts
