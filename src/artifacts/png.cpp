#include "artifacts/png.h"

#include "base/error.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include <lodepng.h>

namespace myxtts {
namespace {

constexpr int shades = 255;  // of the palette's 256 colours; the last is for what is not a number
constexpr unsigned char not_a_number = 255;

// From OKLab's lightness, chroma and hue to linear light; a component outside [0, 1] cannot be shown.
std::array<double, 3> linear_rgb(double lightness, double chroma, double hue_degrees) {
  const double hue = hue_degrees * std::numbers::pi / 180;
  const double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

// Lightness grows evenly while the hue turns from blue over green to yellow. The chroma is a smooth curve just within
// what a screen can show: a kink in it would be seen as an edge that is not in the values.
void add_palette(LodePNGColorMode& mode) {
  mode.colortype = LCT_PALETTE;
  for (int shade = 0; shade < shades; ++shade) {
    const double share = static_cast<double>(shade) / (shades - 1);
    const double chroma = 0.075 + 0.045 * std::pow(1 - share, 10) + 0.1 * std::pow(share, 3);
    const std::array<double, 3> rgb = linear_rgb(0.20 + 0.75 * share, chroma, 275 - 168 * share);
    const auto shown = [](double light) {
      const double encoded = light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
      return static_cast<unsigned char>(std::lround(255 * std::clamp(encoded, 0.0, 1.0)));
    };
    lodepng_palette_add(&mode, shown(rgb[0]), shown(rgb[1]), shown(rgb[2]), 255);
  }
  lodepng_palette_add(&mode, 0xE0, 0x20, 0x20, 255);
}

std::string encode_png(const std::vector<unsigned char>& shades_of_pixels, int64_t width, int64_t height) {
  lodepng::State state;
  state.encoder.auto_convert = 0;
  state.encoder.zlibsettings.windowsize = 32768;  // reaches the lines above, which a scaled picture repeats
  add_palette(state.info_raw);
  lodepng_color_mode_copy(&state.info_png.color, &state.info_raw);
  std::vector<unsigned char> png;
  const unsigned error =
      lodepng::encode(png, shades_of_pixels, static_cast<unsigned>(width), static_cast<unsigned>(height), state);
  if (error != 0) fail("png", "{}", lodepng_error_text(error));
  return {png.begin(), png.end()};
}

// Maps [low, high] to the shades.
struct Shading {
  float low, high;

  Shading(std::span<const float> values, const HeatmapOptions& options) {
    float least = std::numeric_limits<float>::infinity(), most = -least;
    for (const float value : values) {
      if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
    }
    low = options.low.value_or(least), high = options.high.value_or(most);
  }

  unsigned char operator()(float value) const {
    if (std::isnan(value)) return not_a_number;
    if (value >= high) return high > low ? shades - 1 : 0;
    if (value <= low) return 0;
    const double share = (static_cast<double>(value) - low) / (static_cast<double>(high) - low);
    return static_cast<unsigned char>(std::lround(share * (shades - 1)));
  }
};

}  // namespace

std::string make_png_heatmap(std::span<const float> values, int rows, int columns, const HeatmapOptions& options) {
  constexpr int64_t most_pixels = 1 << 28;
  const int64_t width = int64_t{columns} * options.scale, height = int64_t{rows} * options.scale;
  if (rows < 1 || columns < 1 || options.scale < 1 || int64_t{rows} * columns != std::ssize(values) ||
      width > most_pixels / height) {
    fail("png", "{} values make no picture of {} × {} at scale {}", values.size(), rows, columns, options.scale);
  }
  const Shading shading(values, options);
  std::vector<unsigned char> pixels;
  pixels.reserve(static_cast<size_t>(width * height));
  for (int i = 0; i < rows; ++i) {
    const int row = options.low_rows_at_bottom ? rows - 1 - i : i;
    const auto line = values.subspan(static_cast<size_t>(row) * columns, columns);
    for (int again = 0; again < options.scale; ++again) {
      for (const float value : line) pixels.insert(pixels.end(), options.scale, shading(value));
    }
  }
  return encode_png(pixels, width, height);
}

}  // namespace myxtts
