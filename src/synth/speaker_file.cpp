#include "synth/speaker_file.h"

#include "artifacts/safetensors.h"
#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace myxtts {

void write_speaker(const std::filesystem::path& path, const SpeakerFile& speaker) {
  const TensorView tensor{
      "speaker", "F32", {static_cast<int64_t>(speaker.vector.size())}, std::as_bytes(std::span(speaker.vector))};
  write_safetensors(path, {&tensor, 1}, {{"format", "myxtts-speaker"}, {"voice", speaker.voice}});
}

SpeakerFile read_speaker(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const auto format = file.metadata().find("format");
  const TensorView* const tensor = file.find("speaker");
  if (format == file.metadata().end() || format->second != "myxtts-speaker" || tensor == nullptr ||
      tensor->dtype != "F32" || tensor->shape.size() != 1 || !file.metadata().contains("voice")) {
    reject_input("speakers", "{} is not a speaker", path.string(), way_out("make one with `myxtts speakers add`"));
  }
  file.verify();
  SpeakerFile speaker{std::vector<float>(static_cast<size_t>(tensor->shape.front())), file.metadata().at("voice")};
  std::memcpy(speaker.vector.data(), tensor->data.data(), tensor->data.size());
  if (!std::ranges::all_of(speaker.vector, [](float value) { return std::isfinite(value); })) {
    reject_input("speakers", "{} has values that are not finite", path.string(),
                 way_out("make it again with `myxtts speakers add`"));
  }
  return speaker;
}

std::vector<float> mixed(const std::vector<std::vector<float>>& vectors) {
  if (vectors.size() == 1) return vectors.front();
  std::vector<float> sum(vectors.front().size(), 0.0F);
  double squares = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    for (const std::vector<float>& vector : vectors) sum[i] += vector[i];
    squares += static_cast<double>(sum[i]) * sum[i];
  }
  // A speaker's vector has a mean square of one.
  const double scale = std::sqrt(static_cast<double>(sum.size()) / std::max(squares, 1e-12));
  for (float& value : sum) value *= static_cast<float>(scale);
  return sum;
}

}  // namespace myxtts
