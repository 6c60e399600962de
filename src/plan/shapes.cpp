#include "plan/shapes.h"

#include "base/error.h"
#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace myxtts {
namespace {

constexpr int64_t multiple = 8;

int64_t round_up(int64_t length) { return (length + multiple - 1) / multiple * multiple; }

// Clips of one rounded length.
struct Column {
  int64_t frames = 0;
  int64_t count = 0;
};

int64_t batch_size_for(int64_t frames, const DataConfig& data) {
  return data.batch_frames > 0 ? std::max<int64_t>(1, data.batch_frames / frames) : data.batch_size.low;
}

// Which columns end a shape. Cost of a shape: its clips times its length; the true frames are the same in any plan.
std::vector<size_t> best_ends(const std::vector<Column>& columns, const DataConfig& data) {
  constexpr int64_t impossible = std::numeric_limits<int64_t>::max();
  const size_t n = columns.size(), most = static_cast<size_t>(data.shape_buckets);
  std::vector<int64_t> clips_before(n + 1);
  for (size_t i = 0; i < n; ++i) clips_before[i + 1] = clips_before[i] + columns[i].count;
  // cost[k][i]: the first i columns in k shapes; start[k][i]: where the last of them starts.
  std::vector cost(most + 1, std::vector<int64_t>(n + 1, impossible));
  std::vector start(most + 1, std::vector<size_t>(n + 1));
  cost[0][0] = 0;
  for (size_t k = 1; k <= most; ++k) {
    for (size_t i = 1; i <= n; ++i) {
      const int64_t frames = columns[i - 1].frames;
      for (size_t j = 0; j < i; ++j) {
        const int64_t clips = clips_before[i] - clips_before[j];
        const bool whole_corpus = j == 0 && i == n;
        if (cost[k - 1][j] == impossible || (clips < batch_size_for(frames, data) && !whole_corpus)) continue;
        const int64_t total = cost[k - 1][j] + clips * frames;
        if (total < cost[k][i]) cost[k][i] = total, start[k][i] = j;
      }
    }
  }
  size_t k = 1;
  for (size_t candidate = 2; candidate <= most; ++candidate) {
    if (cost[candidate][n] < cost[k][n]) k = candidate;
  }
  std::vector<size_t> ends;
  for (size_t i = n; k > 0; i = start[k--][i]) ends.push_back(i);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

}  // namespace

ShapePlan plan_shapes(std::span<const ClipLength> clips, const DataConfig& data) {
  std::map<int64_t, int64_t> histogram;  // clips held out need room, but do not count
  for (const ClipLength& clip : clips) histogram[round_up(clip.mel_frames)] += clip.held_out == 0 ? 1 : 0;
  if (histogram.empty()) reject_input("corpus", "there is no clip that can be used");
  std::vector<Column> columns;
  for (const auto& [frames, count] : histogram) columns.push_back({frames, count});

  ShapePlan plan;
  std::vector<size_t> shape_of(static_cast<size_t>(columns.back().frames / multiple) + 1);  // by rounded length
  for (const size_t end : best_ends(columns, data)) {
    const int64_t frames = columns[end - 1].frames;
    const size_t first = plan.shapes.empty() ? 0 : static_cast<size_t>(plan.shapes.back().mel_frames / multiple) + 1;
    std::fill(shape_of.begin() + static_cast<std::ptrdiff_t>(first),
              shape_of.begin() + static_cast<std::ptrdiff_t>(frames / multiple) + 1, plan.shapes.size());
    plan.shapes.push_back({0, frames, batch_size_for(frames, data), {}});
  }
  plan.validation = plan.shapes;
  int64_t true_frames = 0, fed_frames = 0;
  for (size_t i = 0; i < clips.size(); ++i) {
    const ClipLength& clip = clips[i];
    const size_t number = shape_of[static_cast<size_t>(round_up(clip.mel_frames) / multiple)];
    Shape& shape = plan.shapes[number];
    shape.text_length = std::max(shape.text_length, round_up(clip.tokens));
    (clip.held_out != 0 ? plan.validation[number] : shape).clips.push_back(static_cast<uint32_t>(i));
    if (clip.held_out == 0) true_frames += clip.mel_frames, fed_frames += shape.mel_frames;
  }
  for (size_t i = 0; i < plan.shapes.size(); ++i) plan.validation[i].text_length = plan.shapes[i].text_length;
  plan.padding = fed_frames == 0 ? 0.0 : 1.0 - static_cast<double>(true_frames) / static_cast<double>(fed_frames);
  return plan;
}

void balance_speakers(std::vector<Shape>& shapes, std::span<const ClipLength> lengths,
                      std::span<const ClipLabels> labels, double balance) {
  if (balance <= 0) return;
  constexpr double most = 50;
  std::map<uint32_t, double> frames;
  for (const Shape& shape : shapes) {
    for (const uint32_t clip : shape.clips) frames[labels[clip].speaker] += lengths[clip].mel_frames;
  }
  double longest = 0;
  for (const auto& [speaker, sum] : frames) longest = std::max(longest, sum);
  for (Shape& shape : shapes) {
    std::vector<uint32_t> repeated;
    for (const uint32_t clip : shape.clips) {
      const double times = std::min(most, std::pow(longest / frames[labels[clip].speaker], balance));
      const double draw = static_cast<double>(Random::mix(clip) >> 11) * 0x1p-53;
      const auto count = static_cast<size_t>(times) + (draw < times - std::floor(times) ? 1 : 0);
      repeated.insert(repeated.end(), count, clip);
    }
    shape.clips = std::move(repeated);
  }
}

ShapePlan plan_corpus(const CorpusIndex& index, const DataConfig& data) {
  ShapePlan plan = plan_shapes(index.lengths(), data);
  balance_speakers(plan.shapes, index.lengths(), index.labels(), data.balance_speakers);
  return plan;
}

void share_among_ranks(ShapePlan& plan, const DataConfig& data, int64_t ranks) {
  for (std::vector<Shape>* shapes : {&plan.shapes, &plan.validation}) {
    for (Shape& shape : *shapes) {
      const int64_t shared = shape.batch_size / ranks * ranks;
      if (shared == shape.batch_size) continue;
      if (data.batch_frames == 0) {
        reject_input("ranks", "{} ranks cannot share batches of {} clips equally", ranks, shape.batch_size,
                     way_out("give --batch-size a multiple of {}", ranks));
      }
      if (shared == 0) {
        reject_input("ranks", "{} ranks cannot share batches of {} clips of {} frames", ranks, shape.batch_size,
                     shape.mel_frames, way_out("set data.batch_frames to {} or more", ranks * shape.mel_frames));
      }
      shape.batch_size = shared;
    }
  }
}

ShapePlan plan_crops(const CorpusIndex& index, const DataConfig& data, int64_t crop_frames) {
  constexpr uint32_t crops_apart = 4;  // a crop for as many frames as this many crops have
  const std::span<const ClipLength> clips = index.lengths();
  ShapePlan plan;
  plan.shapes = plan.validation = {{0, crop_frames, data.batch_size.low, {}}};
  for (uint32_t i = 0; i < clips.size(); ++i) {
    const auto frames = static_cast<int64_t>(clips[i].mel_frames);
    if (frames < crop_frames) continue;
    const bool held_out = clips[i].held_out != 0;
    const int64_t times = held_out ? 1 : std::max<int64_t>(1, frames / (crops_apart * crop_frames));
    std::vector<uint32_t>& list = (held_out ? plan.validation : plan.shapes).front().clips;
    list.insert(list.end(), static_cast<size_t>(times), i);
  }
  if (static_cast<int64_t>(plan.shapes.front().clips.size()) < data.batch_size.low) {
    reject_input("plan", "{} of {} clips are long enough for a vocoder, fewer than a batch of {}",
                 plan.shapes.front().clips.size(), clips.size(), data.batch_size.low,
                 way_out("it needs clips of {} frames or more; lower --batch-size", crop_frames));
  }
  balance_speakers(plan.shapes, clips, index.labels(), data.balance_speakers);
  return plan;
}

std::vector<Shape> fit_to_shapes(std::span<const ClipLength> clips, const std::vector<Shape>& shapes,
                                 std::vector<uint32_t>& unfit) {
  std::vector<Shape> fitted = shapes;
  for (Shape& shape : fitted) shape.clips.clear();
  for (size_t i = 0; i < clips.size(); ++i) {
    const auto fits = [&](const Shape& shape) {
      return clips[i].mel_frames <= shape.mel_frames && clips[i].tokens <= shape.text_length;
    };
    const auto found = std::find_if(fitted.begin(), fitted.end(), fits);
    (found == fitted.end() ? unfit : found->clips).push_back(static_cast<uint32_t>(i));
  }
  return fitted;
}

}  // namespace myxtts
