// rank_plan CLIPS ROWS WORLD...: plans an epoch of a corpus of that many made-up clips for each number of ranks, with
// ROWS clips per rank and batch, every rank's share by itself. Prints JSON: whether every clip came exactly once or was
// left out, how even the bytes are that ranks read, and how long planning took.
#include "base/random.h"
#include "plan/batch_plan.h"
#include "plan/shapes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

// Bell-shaped between 1 and 12 s, as read speech is; 86 frames and 44,100 bytes per second.
std::vector<ClipLength> make_lengths(size_t clips) {
  constexpr double frames_per_s = 22050.0 / 256;
  std::vector<ClipLength> lengths(clips);
  for (size_t i = 0; i < clips; ++i) {
    double sum = 0;
    for (uint64_t draw = 0; draw < 4; ++draw) sum += static_cast<double>(Random::mix(i * 4 + draw) >> 11) * 0x1p-53;
    const double seconds = 1 + 11 * sum / 4;
    lengths[i].mel_frames = static_cast<uint32_t>(seconds * frames_per_s);
    lengths[i].tokens = static_cast<uint32_t>(seconds * 15);
  }
  return lengths;
}

// Of this thread: other work on the machine does not count.
double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

nlohmann::ordered_json simulate(const std::vector<ClipLength>& lengths, int64_t rows, int64_t world) {
  DataConfig data;
  data.batch_size = IntRange::exactly(rows * world);
  data.shape_buckets = 8;
  ShapePlan shapes = plan_shapes(lengths, data);
  share_among_ranks(shapes, data, world);
  const BatchPlan plan(shapes.shapes, 1);
  std::vector<uint8_t> seen(lengths.size());
  std::vector<double> bytes(static_cast<size_t>(world));
  double slowest_ms = 0, total_ms = 0;
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    for (uint64_t index = 0; index < plan.batches_per_epoch(); ++index) {
      const double before_ms = processor_ms();
      const PlannedBatch batch = plan.batch(0, index, rank, static_cast<uint64_t>(world));
      const double ms = processor_ms() - before_ms;
      slowest_ms = std::max(slowest_ms, ms), total_ms += ms;
      for (const uint32_t clip : batch.clips) {
        ++seen[clip];
        bytes[rank] += lengths[clip].mel_frames * 512.0;
      }
    }
  }
  const auto missed = static_cast<uint64_t>(std::ranges::count(seen, 0));
  const auto [least, most] = std::ranges::minmax(bytes);
  const double batches = static_cast<double>(plan.batches_per_epoch()) * static_cast<double>(world);
  return {{"ranks", world},
          {"batches_per_epoch", plan.batches_per_epoch()},
          {"clips_seen_twice", std::ranges::count_if(seen, [](uint8_t count) { return count > 1; })},
          {"clips_left_out", missed},
          {"left_out_as_planned", missed == plan.clips_left_out()},
          {"bytes_per_rank_min", least},
          {"bytes_per_rank_max", most},
          {"bytes_spread", most / least - 1},
          {"planning_ms_mean", total_ms / batches},
          {"planning_ms_max", slowest_ms}};
}

}  // namespace
}  // namespace myxtts

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const auto lengths = myxtts::make_lengths(std::strtoull(arguments[1], nullptr, 10));
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (int i = 3; i < count; ++i) {
    results.push_back(myxtts::simulate(lengths, std::atoll(arguments[2]), std::atoll(arguments[i])));
  }
  std::printf("%s\n", results.dump(2).c_str());
}
