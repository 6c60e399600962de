// What several measurements of one thing say together.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace myxtts {

struct Spread {
  double median = 0;
  double cv = 0;  // standard deviation over mean

  explicit Spread(std::vector<double> values) {  // at least one
    std::sort(values.begin(), values.end());
    median = values[values.size() / 2];
    const auto count = static_cast<double>(values.size());
    double mean = 0, variance = 0;
    for (const double value : values) mean += value / count;
    for (const double value : values) variance += (value - mean) * (value - mean) / count;
    cv = std::sqrt(variance) / mean;
  }
};

}  // namespace myxtts
