#include "base/time_left.h"

#include <cstdint>

#include <fmt/format.h>

namespace myxtts {

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

std::string time_left_text(double seconds, std::time_t now) {
  const std::time_t at = now + static_cast<std::time_t>(seconds);
  std::tm begin{}, end{};
  ::localtime_r(&now, &begin);
  ::localtime_r(&at, &end);
  const bool same_day = begin.tm_yday == end.tm_yday && begin.tm_year == end.tm_year;
  const std::string date =
      same_day ? "" : fmt::format("{}-{:02}-{:02} ", end.tm_year + 1900, end.tm_mon + 1, end.tm_mday);
  const std::string left =
      seconds >= 60 && seconds < 3600 ? fmt::format("{:.0f} min", seconds / 60) : duration_text(seconds);
  return fmt::format("ends about {}{:02}:{:02}, {} left", date, end.tm_hour, end.tm_min, left);
}

}  // namespace myxtts
