// Converts one PCM sample of any encoding to a float in [-1, 1], for both backends. Non-finite floats become 0.
#pragma once

#include "base/host_device.h"

#include <cstdint>
#include <cstring>

namespace myxtts {

enum class SampleFormat : uint8_t { pcm_u8, pcm_16, pcm_24, pcm_32, float_32, float_64, a_law, mu_law };

MYXTTS_HOST_DEVICE constexpr int bytes_per_sample(SampleFormat format) {
  switch (format) {
    case SampleFormat::pcm_16:
      return 2;
    case SampleFormat::pcm_24:
      return 3;
    case SampleFormat::pcm_32:
    case SampleFormat::float_32:
      return 4;
    case SampleFormat::float_64:
      return 8;
    default:
      return 1;
  }
}

// G.711, to the scale of 16-bit samples.
MYXTTS_HOST_DEVICE inline int a_law_to_linear(uint8_t code) {
  code ^= 0x55;
  const int exponent = (code >> 4) & 7;
  const int mantissa = code & 15;
  const int magnitude = exponent == 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 0x108) << (exponent - 1);
  return (code & 0x80) != 0 ? magnitude : -magnitude;
}

MYXTTS_HOST_DEVICE inline int mu_law_to_linear(uint8_t code) {
  code = static_cast<uint8_t>(~code);
  const int magnitude = ((((code & 15) << 3) + 0x84) << ((code >> 4) & 7)) - 0x84;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

MYXTTS_HOST_DEVICE inline float finite_or_zero(float value) {
  return value - value == 0.0F ? value : 0.0F;  // NaN and infinity are not equal to themselves minus themselves
}

// `at` need not be aligned.
MYXTTS_HOST_DEVICE inline float sample_value(SampleFormat format, const uint8_t* at) {
  switch (format) {
    case SampleFormat::pcm_u8:
      return (static_cast<int>(at[0]) - 128) / 128.0F;
    case SampleFormat::pcm_16:
      return static_cast<int16_t>(at[0] | at[1] << 8) / 32768.0F;
    case SampleFormat::pcm_24:
      return static_cast<int32_t>(static_cast<uint32_t>(at[0]) << 8 | static_cast<uint32_t>(at[1]) << 16 |
                                  static_cast<uint32_t>(at[2]) << 24) /
             2147483648.0F;
    case SampleFormat::pcm_32:
      return static_cast<int32_t>(static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 |
                                  static_cast<uint32_t>(at[2]) << 16 | static_cast<uint32_t>(at[3]) << 24) /
             2147483648.0F;
    case SampleFormat::float_32: {
      float value;
      memcpy(&value, at, sizeof value);
      return finite_or_zero(value);
    }
    case SampleFormat::float_64: {
      double value;
      memcpy(&value, at, sizeof value);
      return finite_or_zero(static_cast<float>(value));
    }
    case SampleFormat::a_law:
      return a_law_to_linear(at[0]) / 32768.0F;
    case SampleFormat::mu_law:
      return mu_law_to_linear(at[0]) / 32768.0F;
  }
  return 0.0F;
}

// Mean over the channels of one frame.
MYXTTS_HOST_DEVICE inline float mono_value(SampleFormat format, int channels, const uint8_t* frame) {
  if (channels == 1) return sample_value(format, frame);
  float sum = 0.0F;
  for (int channel = 0; channel < channels; ++channel) {
    sum += sample_value(format, frame + channel * bytes_per_sample(format));
  }
  return sum / static_cast<float>(channels);
}

}  // namespace myxtts
