// FFTs of 4, 8 and 32 points in the registers of a thread, in float or double. All indices and twiddles are
// compile-time constants, so unused outputs cost nothing.
#pragma once

#include "base/host_device.h"

namespace myxtts::gpu {

__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <typename T>
__device__ inline void rotate_45(T& re, T& im) {  // times e^(-i pi/4)
  constexpr T half_root = 0.70710678118654752440;
  const T sum = (re + im) * half_root, difference = (im - re) * half_root;
  re = sum;
  im = difference;
}

// cos(2 pi k / 32)
constexpr double cosines_32[32] = {1.0,
                                   0.98078528040323044913,
                                   0.92387953251128675613,
                                   0.83146961230254523708,
                                   0.70710678118654752440,
                                   0.55557023301960222474,
                                   0.38268343236508977173,
                                   0.19509032201612826785,
                                   0.0,
                                   -0.19509032201612826785,
                                   -0.38268343236508977173,
                                   -0.55557023301960222474,
                                   -0.70710678118654752440,
                                   -0.83146961230254523708,
                                   -0.92387953251128675613,
                                   -0.98078528040323044913,
                                   -1.0,
                                   -0.98078528040323044913,
                                   -0.92387953251128675613,
                                   -0.83146961230254523708,
                                   -0.70710678118654752440,
                                   -0.55557023301960222474,
                                   -0.38268343236508977173,
                                   -0.19509032201612826785,
                                   0.0,
                                   0.19509032201612826785,
                                   0.38268343236508977173,
                                   0.55557023301960222474,
                                   0.70710678118654752440,
                                   0.83146961230254523708,
                                   0.92387953251128675613,
                                   0.98078528040323044913};

// Multiplies by e^(-2 pi i k / 32).
template <int k, typename T>
__device__ inline void twiddle_32(T& re, T& im) {
  if constexpr (k == 0) {
    return;
  } else if constexpr (k == 4) {
    rotate_45(re, im);
  } else if constexpr (k == 8) {
    const T old = re;
    re = im;
    im = -old;
  } else {
    constexpr T cosine = cosines_32[k % 32], sine = -cosines_32[(k + 24) % 32];
    const T old = re;
    re = old * cosine - im * sine;
    im = im * cosine + old * sine;
  }
}

template <typename T>
__device__ inline void transform_4(T (&re)[4], T (&im)[4]) {
  const T ar = re[0] + re[2], ai = im[0] + im[2], br = re[0] - re[2], bi = im[0] - im[2];
  const T cr = re[1] + re[3], ci = im[1] + im[3], dr = re[1] - re[3], di = im[1] - im[3];
  re[0] = ar + cr, im[0] = ai + ci;
  re[1] = br + di, im[1] = bi - dr;
  re[2] = ar - cr, im[2] = ai - ci;
  re[3] = br - di, im[3] = bi + dr;
}

template <typename T>
__device__ inline void transform_8(T (&re)[8], T (&im)[8]) {
  T er[4] = {re[0], re[2], re[4], re[6]}, ei[4] = {im[0], im[2], im[4], im[6]};
  T fr[4] = {re[1], re[3], re[5], re[7]}, fi[4] = {im[1], im[3], im[5], im[7]};
  transform_4(er, ei);
  transform_4(fr, fi);
  twiddle_32<4>(fr[1], fi[1]);
  twiddle_32<8>(fr[2], fi[2]);
  twiddle_32<8>(fr[3], fi[3]);
  twiddle_32<4>(fr[3], fi[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    re[i] = er[i] + fr[i], im[i] = ei[i] + fi[i];
    re[i + 4] = er[i] - fr[i], im[i + 4] = ei[i] - fi[i];
  }
}

MYXTTS_HOST_DEVICE constexpr double cosine_32(int k) { return cosines_32[k % 32]; }
MYXTTS_HOST_DEVICE constexpr double sine_32(int k) { return cosines_32[(k + 24) % 32]; }

// 4-point FFT with twiddles e^(-2 pi i k n / 32). Cosines are factored out, so that every step is an FMA: 22 instead of
// 28 operations.
template <int k, typename T>
__device__ inline void twiddled_fft_4(T (&re)[4], T (&im)[4]) {
  if constexpr (k == 0 || k == 4) {  // k = 4 rotates by a right angle, whose tangent is infinite
    if constexpr (k == 4) {
      twiddle_32<4>(re[1], im[1]);
      twiddle_32<8>(re[2], im[2]);
      twiddle_32<4>(re[3], im[3]);
      twiddle_32<8>(re[3], im[3]);
    }
    transform_4(re, im);
  } else {
    constexpr double exact1 = cosine_32(k), exact2 = cosine_32(2 * k), exact3 = cosine_32(3 * k);
    constexpr T cos1 = exact1, cos2 = exact2;
    constexpr T tan1 = sine_32(k) / exact1, tan2 = sine_32(2 * k) / exact2, tan3 = sine_32(3 * k) / exact3;
    const T r1 = fused(tan1, im[1], re[1]), i1 = fused(-tan1, re[1], im[1]);
    const T r2 = fused(tan2, im[2], re[2]), i2 = fused(-tan2, re[2], im[2]);
    const T r3 = fused(tan3, im[3], re[3]), i3 = fused(-tan3, re[3], im[3]);
    const T ar = fused(cos2, r2, re[0]), ai = fused(cos2, i2, im[0]);
    const T br = fused(-cos2, r2, re[0]), bi = fused(-cos2, i2, im[0]);
    constexpr T ratio = exact3 / exact1;
    const T cr = fused(ratio, r3, r1), ci = fused(ratio, i3, i1);
    const T dr = fused(-ratio, r3, r1), di = fused(-ratio, i3, i1);
    re[0] = fused(cos1, cr, ar), im[0] = fused(cos1, ci, ai);
    re[1] = fused(cos1, di, br), im[1] = fused(-cos1, dr, bi);
    re[2] = fused(-cos1, cr, ar), im[2] = fused(-cos1, ci, ai);
    re[3] = fused(-cos1, di, br), im[3] = fused(cos1, dr, bi);
  }
}

// 32 = 8 x 4 points. Column n2 holds points n2, n2 + 4, ...; `sums` and `differences` are those of points i and i + 16.
template <int n2, typename T>
__device__ inline void column_32(const T (&sr)[16], const T (&si)[16], const T (&dr)[16], const T (&di)[16], T (&re)[8],
                                 T (&im)[8]) {
  // 8-point FFT after its first butterfly of points 4 apart.
  const T ar = sr[n2] + sr[n2 + 8], ai = si[n2] + si[n2 + 8], br = sr[n2] - sr[n2 + 8], bi = si[n2] - si[n2 + 8];
  const T cr = sr[n2 + 4] + sr[n2 + 12], ci = si[n2 + 4] + si[n2 + 12];
  const T er = sr[n2 + 4] - sr[n2 + 12], ei = si[n2 + 4] - si[n2 + 12];
  re[0] = ar + cr, im[0] = ai + ci;
  re[4] = ar - cr, im[4] = ai - ci;
  re[2] = br + ei, im[2] = bi - er;
  re[6] = br - ei, im[6] = bi + er;
  // Odd outputs: even part d0, d2 (times -i) and odd part d1, d3 rotated by 1/8.
  const T fr = dr[n2] + di[n2 + 8], fi = di[n2] - dr[n2 + 8], gr = dr[n2] - di[n2 + 8], gi = di[n2] + dr[n2 + 8];
  T hr = dr[n2 + 4] + di[n2 + 12], hi = di[n2 + 4] - dr[n2 + 12];
  T kr = dr[n2 + 4] - di[n2 + 12], ki = di[n2 + 4] + dr[n2 + 12];
  rotate_45(hr, hi);
  twiddle_32<8>(kr, ki);
  rotate_45(kr, ki);
  re[1] = fr + hr, im[1] = fi + hi;
  re[5] = fr - hr, im[5] = fi - hi;
  re[3] = gr + kr, im[3] = gi + ki;
  re[7] = gr - kr, im[7] = gi - ki;
}

template <int k1, typename T>
__device__ inline void row_32(const T (&ar)[4][8], const T (&ai)[4][8], T (&re)[32], T (&im)[32]) {
  if constexpr (k1 < 8) {
    T r[4] = {ar[0][k1], ar[1][k1], ar[2][k1], ar[3][k1]}, i[4] = {ai[0][k1], ai[1][k1], ai[2][k1], ai[3][k1]};
    twiddled_fft_4<k1>(r, i);
#pragma unroll
    for (int k2 = 0; k2 < 4; ++k2) re[k1 + 8 * k2] = r[k2], im[k1 + 8 * k2] = i[k2];
    row_32<k1 + 1>(ar, ai, re, im);
  }
}

template <typename T>
__device__ inline void transform_32(const T (&sr)[16], const T (&si)[16], const T (&dr)[16], const T (&di)[16],
                                    T (&re)[32], T (&im)[32]) {
  T ar[4][8], ai[4][8];
  column_32<0>(sr, si, dr, di, ar[0], ai[0]);
  column_32<1>(sr, si, dr, di, ar[1], ai[1]);
  column_32<2>(sr, si, dr, di, ar[2], ai[2]);
  column_32<3>(sr, si, dr, di, ar[3], ai[3]);
  row_32<0>(ar, ai, re, im);
}

}  // namespace myxtts::gpu
