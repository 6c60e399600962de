// Pictures of matrices: spectrograms and alignments. Any thread.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace myxtts {

struct HeatmapOptions {
  std::optional<float> low = {};   // drawn darkest; by itself the least value
  std::optional<float> high = {};  // drawn brightest; by itself the largest
  int scale = 1;                   // pixels of a value in both directions
  bool low_rows_at_bottom = true;  // as frequencies are drawn
};

// `values` row by row. Dark blue to yellow in even steps of lightness; what is not a number is red. Throws Error when
// the sizes do not fit or the picture would have more than 2^28 pixels.
std::string make_png_heatmap(std::span<const float> values, int rows, int columns, const HeatmapOptions& options = {});

}  // namespace myxtts
