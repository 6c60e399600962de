#include "features/cuda/filter_rounds.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace myxtts::gpu {
namespace {

// Work of one lane in a round: taps [skipped, skipped + count) of a filter, read from `first_bin`.
struct Task {
  int mel = -1;
  int skipped = 0;
  int count = 0;
  int first_bin = 0;
};

struct Round {
  int quads = 0;
  int lanes_per_filter = 1;
  std::array<Task, 32> tasks;
  int bank_conflicts = 0;
};

// Places the filters `mels` with `quads` quads per lane, the least movable first.
Round place(const std::vector<MelFilter>& filters, std::vector<int> mels, int lanes_per_filter, int quads) {
  Round round{quads, lanes_per_filter, {}, 0};
  const int taps = 4 * quads;
  const auto part_width = [&](int mel) {
    return (static_cast<int>(filters[static_cast<size_t>(mel)].weights.size()) + lanes_per_filter - 1) /
           lanes_per_filter;
  };
  std::stable_sort(mels.begin(), mels.end(), [&](int a, int b) { return part_width(a) > part_width(b); });
  std::array<std::array<int, 16>, 2> used{};
  std::array<int, 2> lanes_used{};
  for (const int mel : mels) {
    const MelFilter& filter = filters[static_cast<size_t>(mel)];
    const int width = part_width(mel);
    // Best shifts of all parts for each half-warp, and their bank conflicts.
    std::array<std::vector<int>, 2> moves;
    std::array<int, 2> cost{};
    for (size_t half = 0; half < 2; ++half) {
      auto counts = used[half];
      for (int part = 0; part < lanes_per_filter; ++part) {
        const int start = filter.first_bin + part * width;
        int best = 0;
        for (int move = 0; move <= taps - width && move <= start; ++move) {
          if (counts[static_cast<size_t>((start - move) % 16)] < counts[static_cast<size_t>((start - best) % 16)])
            best = move;
        }
        cost[half] += counts[static_cast<size_t>((start - best) % 16)]++;
        moves[half].push_back(best);
      }
      if (lanes_used[half] + lanes_per_filter > 16) cost[half] = 1 << 20;
    }
    const size_t half = cost[1] < cost[0] ? 1 : 0;
    for (int part = 0; part < lanes_per_filter; ++part) {
      const int move = moves[half][static_cast<size_t>(part)], start = filter.first_bin + part * width - move;
      const int count = std::min(width, static_cast<int>(filter.weights.size()) - part * width);
      ++used[half][static_cast<size_t>(start % 16)];
      round.tasks[16 * half + static_cast<size_t>(lanes_used[half]++)] = {mel, part * width, std::max(count, 0), start};
    }
  }
  for (const auto& half : used)
    round.bank_conflicts += taps * std::max(0, *std::max_element(half.begin(), half.end()) - 1);
  return round;
}

Round best_round(const std::vector<MelFilter>& filters, const std::vector<int>& mels) {
  int lanes_per_filter = 1, widest = 0;
  while (!mels.empty() && static_cast<int>(mels.size()) * lanes_per_filter * 2 <= 32) lanes_per_filter *= 2;
  for (const int mel : mels)
    widest = std::max(widest, static_cast<int>(filters[static_cast<size_t>(mel)].weights.size()));
  const int least = ((widest + lanes_per_filter - 1) / lanes_per_filter + 3) / 4;
  Round best = place(filters, mels, lanes_per_filter, least);
  for (int quads = least + 1; quads <= least + 2 && least > 0; ++quads) {
    const Round more = place(filters, mels, lanes_per_filter, quads);
    // A quad costs about 24 cycles of shared memory and issue slots.
    if (more.bank_conflicts + 24 * quads < best.bank_conflicts + 24 * best.quads) best = more;
  }
  return best;
}

}  // namespace

FilterSchedule schedule_filters(const std::vector<MelFilter>& filters, const std::vector<float>& rounding_thresholds) {
  std::vector<int> order(filters.size());
  std::iota(order.begin(), order.end(), 0);
  const auto width = [&](int mel) { return filters[static_cast<size_t>(mel)].weights.size(); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return width(a) < width(b); });
  FilterSchedule schedule;
  for (size_t begin = 0; begin < order.size() || schedule.quads.size() < min_rounds; begin += 32) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(std::min(begin, order.size()));
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 32, order.size()));
    const Round round = best_round(filters, {first, end});
    const size_t at = schedule.table.size();
    schedule.table.resize(at + static_cast<size_t>(32 * round.quads));
    for (size_t lane = 0; lane < 32; ++lane) {
      const Task& task = round.tasks[lane];
      const auto mel = static_cast<size_t>(std::max(task.mel, 0));
      schedule.lanes.push_back({static_cast<int16_t>(task.first_bin), static_cast<int16_t>(task.mel),
                                task.mel < 0 || rounding_thresholds.empty() ? 0.0F : rounding_thresholds[mel]});
      const int zeros = task.mel < 0 ? 0 : filters[mel].first_bin + task.skipped - task.first_bin;
      for (int i = 0; i < task.count; ++i) {
        float4& four = schedule.table[at + static_cast<size_t>((zeros + i) / 4) * 32 + lane];
        float* const one[] = {&four.x, &four.y, &four.z, &four.w};
        *one[(zeros + i) % 4] = static_cast<float>(filters[mel].weights[static_cast<size_t>(task.skipped + i)]);
      }
    }
    schedule.quads.push_back(round.quads);
    schedule.lanes_per_filter.push_back(round.lanes_per_filter);
    schedule.bank_conflicts += round.bank_conflicts;
  }
  return schedule;
}

}  // namespace myxtts::gpu
