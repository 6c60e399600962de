#include "cli/gpu_panel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace myxtts {
namespace {

using Parts = std::vector<std::string>;

std::string of_limit(double value, const std::optional<double>& limit, const char* unit) {
  return limit ? fmt::format("{:.0f} of {:.0f} {}", value, *limit, unit) : fmt::format("{:.0f} {}", value, unit);
}

Parts activity(const GpuSample& sample) {
  Parts parts;
  if (sample.utilisation_percent) parts.push_back(fmt::format("utilisation {:3.0f} %", *sample.utilisation_percent));
  if (sample.sm_active_percent) parts.push_back(fmt::format("SM {:3.0f} %", *sample.sm_active_percent));
  if (sample.tensor_active_percent) parts.push_back(fmt::format("tensor {:3.0f} %", *sample.tensor_active_percent));
  return parts;
}

Parts memory_and_power(const GpuSample& sample, const GpuLimits& limits) {
  Parts parts;
  if (sample.memory_used_mb) {
    const std::string all = limits.memory_mb ? fmt::format(" of {:.1f}", *limits.memory_mb / 1024) : "";
    parts.push_back(fmt::format("memory {:.1f}{} GB", *sample.memory_used_mb / 1024, all));
  }
  if (sample.power_w) parts.push_back("power " + of_limit(*sample.power_w, limits.power_w, "W"));
  if (sample.temperature_c) parts.push_back(fmt::format("{:.0f} °C", *sample.temperature_c));
  return parts;
}

Parts clocks_and_wire(const GpuSample& sample, const GpuLimits& limits) {
  Parts parts;
  if (sample.sm_mhz) parts.push_back("clock " + of_limit(*sample.sm_mhz, limits.sm_mhz, "MHz"));
  if (sample.memory_mhz) parts.push_back("memory clock " + of_limit(*sample.memory_mhz, limits.memory_mhz, "MHz"));
  if (sample.pcie_to_gpu_mb_s && sample.pcie_from_gpu_mb_s) {
    parts.push_back(
        fmt::format("PCIe {:.0f} MB/s in, {:.0f} out", *sample.pcie_to_gpu_mb_s, *sample.pcie_from_gpu_mb_s));
  }
  return parts;
}

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A line that wraps would spoil the redrawing.
std::string cut(const std::string& line, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
    if (begins && seen++ == columns) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::string gpu_line(const GpuSample& sample, const GpuLimits& limits) {
  Parts parts = activity(sample);
  for (Parts more : {memory_and_power(sample, limits), clocks_and_wire(sample, limits)}) {
    std::move(more.begin(), more.end(), std::back_inserter(parts));
  }
  if (!sample.throttled.empty()) parts.push_back("throttled: " + sample.throttled);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> gpu_chart(std::span<const TimedSample> samples, double now_s, size_t columns, size_t rows) {
  static constexpr const char* blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr double minute_s = 60;
  const double column_s = minute_s / static_cast<double>(columns);
  const auto column_of = [&](double at_s) { return static_cast<int64_t>(std::floor(at_s / column_s)); };
  const int64_t first = column_of(now_s) - static_cast<int64_t>(columns) + 1;
  std::vector<double> sums(columns), counts(columns);
  for (size_t i = samples.size(); i-- > 0 && column_of(samples[i].at_s) >= first;) {
    const GpuSample& gpu = samples[i].gpu;
    const auto column =
        static_cast<size_t>(std::min(column_of(samples[i].at_s) - first, static_cast<int64_t>(columns) - 1));
    const std::optional<double>& value = gpu.sm_active_percent ? gpu.sm_active_percent : gpu.utilisation_percent;
    if (value) sums[column] += *value, counts[column] += 1;
  }
  std::vector<std::string> lines(rows);
  for (size_t column = 0; column < columns; ++column) {
    // What is nothing still shows that it was looked at.
    const long eighths =
        counts[column] == 0
            ? 0
            : std::max(1L, std::lround(sums[column] / counts[column] / 100 * 8 * static_cast<double>(rows)));
    for (size_t row = 0; row < rows; ++row) {
      const long below = 8 * static_cast<long>(rows - 1 - row);
      lines[row] += blocks[std::clamp(eighths - below, 0L, 8L)];
    }
  }
  return lines;
}

void GpuPanel::draw(std::span<const TimedSample> samples, double until_s) {
  const TimedSample& last = samples.back();
  const size_t width = terminal_columns();
  constexpr size_t margin = 7, rows = 4;
  const size_t columns = std::clamp<size_t>(width > margin ? width - margin : 0, 10, 120);
  const std::string end = until_s > 0 ? fmt::format("{:.0f} of {:.0f} s", last.at_s, until_s)
                                      : fmt::format("{:.0f} s, Ctrl-C ends", last.at_s);
  const std::string throttled = last.gpu.throttled.empty() ? "" : "   throttled: " + last.gpu.throttled;
  Parts lines = {fmt::format("{}   {}{}", title_, end, throttled),
                 fmt::format("  {}", fmt::join(activity(last.gpu), "   ")),
                 fmt::format("  {}", fmt::join(memory_and_power(last.gpu, limits_), "   ")),
                 fmt::format("  {}", fmt::join(clocks_and_wire(last.gpu, limits_), "   "))};
  const Parts chart = gpu_chart(samples, last.at_s, columns, rows);
  for (size_t row = 0; row < rows; ++row) {
    lines.push_back(fmt::format("{:>3} % {}", row == 0 ? "100" : row + 1 == rows ? "0" : "", chart[row]));
  }
  for (size_t row = 1; row + 1 < rows; ++row) lines[4 + row].replace(0, 6, "      ");
  lines.push_back(fmt::format("{:6}{:<{}}{:>5}", "", "1 min ago", columns - 5, "now"));
  std::string text = lines_ > 0 ? fmt::format("\033[{}A", lines_) : "";
  for (const std::string& line : lines) text += "\r\033[K" + cut(line, width) + "\n";
  lines_ = lines.size();
  fmt::print("{}", text);
  std::fflush(stdout);
}

}  // namespace myxtts
