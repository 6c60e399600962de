#include "corpus/shapes.h"

#include "base/error.h"

#include <algorithm>
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

ShapePlan plan_shapes(const Corpus& corpus, const DataConfig& data) {
  if (corpus.clips.empty()) reject_input("corpus", "{} has no clip that can be used", corpus.folder.string());
  std::map<int64_t, int64_t> histogram;
  for (const CorpusClip& clip : corpus.clips) ++histogram[round_up(clip.mel_frames)];
  std::vector<Column> columns;
  for (const auto& [frames, count] : histogram) columns.push_back({frames, count});

  ShapePlan plan;
  for (const size_t end : best_ends(columns, data)) {
    const int64_t frames = columns[end - 1].frames;
    plan.shapes.push_back({0, frames, batch_size_for(frames, data), {}});
  }
  int64_t true_frames = 0, fed_frames = 0;
  for (size_t i = 0; i < corpus.clips.size(); ++i) {
    const CorpusClip& clip = corpus.clips[i];
    Shape& shape = *std::find_if(plan.shapes.begin(), plan.shapes.end(),
                                 [&](const Shape& candidate) { return clip.mel_frames <= candidate.mel_frames; });
    shape.clips.push_back(static_cast<uint32_t>(i));
    shape.text_length = std::max(shape.text_length, round_up(clip.tokens));
    true_frames += clip.mel_frames;
    fed_frames += shape.mel_frames;
  }
  plan.padding = 1.0 - static_cast<double>(true_frames) / static_cast<double>(fed_frames);
  return plan;
}

}  // namespace myxtts
