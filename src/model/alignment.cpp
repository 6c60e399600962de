#include "model/alignment.h"

#include <algorithm>
#include <vector>

namespace myxtts {

void align_on_cpu(const AlignmentProblem& problem, int64_t row) {
  const int64_t tokens = problem.text_lengths[row], frames = problem.mel_lengths[row];
  const float* scores = problem.scores + row * problem.frames * problem.tokens;
  int32_t* result = problem.token_of_frame + row * problem.frames;
  int32_t* durations = problem.durations + row * problem.tokens;
  std::fill(result, result + problem.frames, -1);
  std::fill(durations, durations + problem.tokens, 0);
  if (tokens == 0 || frames < tokens) return;

  // best[t]: score of the best path that ends at this frame in token t.
  constexpr float unreachable = -1e32F;
  std::vector<float> best(static_cast<size_t>(tokens), unreachable);
  std::vector<uint8_t> advances(static_cast<size_t>(tokens * frames));  // 1: the best path came from token t - 1
  best[0] = scores[0];
  for (int64_t frame = 1; frame < frames; ++frame) {
    const float* score = scores + frame * problem.tokens;
    uint8_t* advance = advances.data() + frame * tokens;
    for (int64_t t = std::min(frame, tokens - 1); t >= 0; --t) {
      const float advanced = t > 0 ? best[static_cast<size_t>(t) - 1] : unreachable;
      const float stayed = best[static_cast<size_t>(t)];
      advance[t] = advanced > stayed ? 1 : 0;
      best[static_cast<size_t>(t)] = std::max(advanced, stayed) + score[t];
    }
  }
  int64_t token = tokens - 1;
  for (int64_t frame = frames - 1; frame >= 0; --frame) {
    result[frame] = static_cast<int32_t>(token);
    ++durations[token];
    // The first token has no predecessor, even if its score is not finite.
    if (token > 0) token -= advances[static_cast<size_t>(frame * tokens + token)];
  }
}

}  // namespace myxtts
