#include "artifacts/png.h"

#include "artifacts/crc.h"
#include "base/error.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace myxtts {
namespace {

constexpr int shades = 255;  // of the palette's 256 colours; the last is for what is not a number
constexpr unsigned char not_a_number = 255;

void append_big_endian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

std::string chunk(std::string_view type, std::string_view content) {
  std::string out;
  append_big_endian(out, static_cast<uint32_t>(content.size()));
  const std::string checked = std::string(type) + std::string(content);
  out += checked;
  append_big_endian(out, crc32<crc_of_png>(checked));
  return out;
}

// Deflate with the fixed codes and one kind of match: the last byte again, which is what a heatmap is made of once it
// is scaled up.
class RunDeflate {
 public:
  std::string compress(std::string_view bytes) {
    put(0b011, 3);  // the last block, with fixed codes
    for (size_t at = 0; at < bytes.size();) {
      size_t run = 0;
      while (at > 0 && run < longest_match && at + run < bytes.size() && bytes[at + run] == bytes[at - 1]) ++run;
      if (run >= 3) {
        match(static_cast<int>(run));
        at += run;
      } else {
        symbol(static_cast<unsigned char>(bytes[at++]));
      }
    }
    symbol(256);  // the end
    if (bit_count_ > 0) put(0, 8 - bit_count_);
    return std::move(out_);
  }

 private:
  static constexpr size_t longest_match = 258;

  // Lowest bit first.
  void put(uint32_t value, int bits) {
    waiting_ |= value << bit_count_;
    for (bit_count_ += bits; bit_count_ >= 8; bit_count_ -= 8, waiting_ >>= 8) out_ += static_cast<char>(waiting_);
  }

  // Codes are written highest bit first.
  void code(uint32_t value, int bits) {
    for (int bit = bits - 1; bit >= 0; --bit) put((value >> bit) & 1, 1);
  }

  void symbol(int value) {
    if (value < 144) return code(static_cast<uint32_t>(0x30 + value), 8);
    if (value < 256) return code(static_cast<uint32_t>(0x190 + value - 144), 9);
    if (value < 280) return code(static_cast<uint32_t>(value - 256), 7);
    code(static_cast<uint32_t>(0xC0 + value - 280), 8);
  }

  // Lengths 3 to 10 have a symbol each; from there on every four symbols share a number of extra bits.
  void match(int length) {
    if (length == longest_match) {
      symbol(285);
    } else if (length < 11) {
      symbol(254 + length);
    } else {
      int extra = 1;
      while (length >= 3 + (8 << extra)) ++extra;
      const int over = length - 3 - (4 << extra);
      symbol(261 + 4 * extra + (over >> extra));
      put(static_cast<uint32_t>(over & ((1 << extra) - 1)), extra);
    }
    code(0, 5);  // distance 1
  }

  std::string out_;
  uint32_t waiting_ = 0;
  int bit_count_ = 0;
};

std::string zlib(std::string_view bytes) {
  uint32_t a = 1, b = 0;  // Adler-32
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  std::string out = "\x78\x01" + RunDeflate().compress(bytes);
  append_big_endian(out, b << 16 | a);
  return out;
}

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
std::string make_palette() {
  std::string palette;
  for (int shade = 0; shade < shades; ++shade) {
    const double share = static_cast<double>(shade) / (shades - 1);
    const double chroma = 0.075 + 0.045 * std::pow(1 - share, 10) + 0.1 * std::pow(share, 3);
    const std::array<double, 3> rgb = linear_rgb(0.20 + 0.75 * share, chroma, 275 - 168 * share);
    for (const double light : rgb) {
      const double shown = light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
      palette += static_cast<char>(std::lround(255 * std::clamp(shown, 0.0, 1.0)));
    }
  }
  return palette + "\xE0\x20\x20";
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

  char operator()(float value) const {
    if (std::isnan(value)) return static_cast<char>(not_a_number);
    if (value >= high) return static_cast<char>(high > low ? shades - 1 : 0);
    if (value <= low) return 0;
    const double share = (static_cast<double>(value) - low) / (static_cast<double>(high) - low);
    return static_cast<char>(std::lround(share * (shades - 1)));
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
  std::string lines;
  for (int i = 0; i < rows; ++i) {
    const int row = options.low_rows_at_bottom ? rows - 1 - i : i;
    lines += '\0';  // as it is
    for (int column = 0; column < columns; ++column) {
      lines.append(static_cast<size_t>(options.scale), shading(values[static_cast<size_t>(row) * columns + column]));
    }
    for (int again = 1; again < options.scale; ++again) {
      lines += '\2';  // the difference to the line above: none
      lines.append(static_cast<size_t>(width), '\0');
    }
  }
  std::string header;
  append_big_endian(header, static_cast<uint32_t>(width));
  append_big_endian(header, static_cast<uint32_t>(height));
  header += std::string("\x08\x03\0\0\0", 5);  // 8 bits a pixel, a palette, nothing special
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + chunk("PLTE", make_palette()) + chunk("IDAT", zlib(lines)) +
         chunk("IEND", "");
}

}  // namespace myxtts
