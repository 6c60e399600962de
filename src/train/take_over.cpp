#include "train/take_over.h"

#include "base/error.h"
#include "features/mel.h"
#include "loader/row_builder.h"
#include "synth/tensor_view.h"
#include "synth/voice_file.h"
#include "text/utf8.h"

#include <algorithm>
#include <map>
#include <optional>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

// The row of the old table for each row of the new one; -1: there is none.
using Rows = std::vector<int64_t>;

Rows rows_by_name(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  Rows rows;
  for (const std::string& name : now) {
    const auto found = std::ranges::find(before, name);
    rows.push_back(found == before.end() ? -1 : found - before.begin());
  }
  return rows;
}

std::vector<std::string> token_names(const Vocabulary& vocabulary) {
  std::vector<std::string> names = {"padding", "blank"};
  for (const char32_t symbol : vocabulary.symbols()) names.push_back(encode_utf8({symbol}));
  return names;
}

// Copies the rows that there are, and lists the others as `what`.
void take_rows(const at::Tensor& before, const Rows& rows, const std::vector<std::string>& names, const char* what,
               at::Tensor now, std::vector<std::string>& fresh) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0) {
      now[static_cast<int64_t>(i)].copy_(before[rows[i]]);
    } else {
      fresh.push_back(fmt::format("{} {}", what, names[i].empty() ? "without a name" : names[i]));
    }
  }
}

// The mean vector of some clips of a speaker of the corpus; nothing if none can be read.
std::optional<at::Tensor> vector_of(const Voice& voice, const Weights& weights, const Corpus& corpus,
                                    const std::string& speaker) {
  constexpr int enough = 16;
  at::Tensor sum = at::zeros({condition_width});
  int heard = 0;
  for (size_t i = 0; i < corpus.index.size() && heard < enough; ++i) {
    const ClipLabels& labels = corpus.index.labels()[i];
    if (corpus.index.summary().speakers[labels.speaker] != speaker || corpus.index.lengths()[i].held_out != 0) continue;
    try {
      const Mel mel = MelCpu(corpus.mel).compute(read_used_part(corpus, corpus.clip(i)));
      if (mel.frames < reference_window) continue;
      const at::Tensor frames = at::tensor(mel.values).view({mel.frames, mel.n_mels});
      sum += voice.reference_vector(weights, frames.narrow(0, 0, std::min<int64_t>(mel.frames, reference_frames)));
      ++heard;
    } catch (const Error&) {  // it is reported when its turn comes
    }
  }
  if (heard == 0) return std::nullopt;
  return sum / heard;
}

}  // namespace

TakenOver take_over(const std::filesystem::path& path, const VoiceDescription& from, const VoiceDescription& voice,
                    const Corpus& corpus, uint64_t seed) {
  const SafetensorsFile file(path);
  file.verify();
  const Voice made(voice.spec(), false);
  const ParameterLayout& layout = made.layout();
  TakenOver taken;
  taken.flat = layout.initial(seed);
  const std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> tables = {
      {"encoder.embedding", {token_names(from.vocabulary), token_names(voice.vocabulary)}},
      {"speakers.table", {from.speakers, voice.speakers}},
      {"languages.table", {from.languages, voice.languages}}};
  const std::map<std::string, const char*> words = {
      {"encoder.embedding", "token"}, {"speakers.table", "speaker"}, {"languages.table", "language"}};
  const std::vector<at::Tensor> views = layout.views(taken.flat);
  for (size_t i = 0; i < views.size(); ++i) {
    const std::string& name = layout.specs()[i].name;
    const TensorView* const before = file.find("average." + name);
    const auto table = tables.find(name);
    if (before == nullptr || (table == tables.end() && before->shape != layout.specs()[i].shape)) {
      taken.fresh.push_back(name);
    } else if (table != tables.end()) {
      const auto& [old_names, names] = table->second;
      take_rows(as_tensor(*before, path), rows_by_name(old_names, names), names, words.at(name), views[i], taken.fresh);
    } else {
      views[i].copy_(as_tensor(*before, path, layout.specs()[i].shape));
    }
  }
  file.check_whole();
  for (const std::string& name : file.names()) {
    const std::string prefix = "average.";
    if (!name.starts_with(prefix)) continue;
    const auto same = [&](const ParameterSpec& spec) { return prefix + spec.name == name; };
    if (std::ranges::none_of(layout.specs(), same)) taken.unused.push_back(name.substr(prefix.size()));
  }
  if (from.speakers.empty() || voice.speakers.empty()) return taken;
  const Weights weights = make_weights(layout, taken.flat, false);
  const auto table = std::ranges::find(layout.specs(), "speakers.table", &ParameterSpec::name) - layout.specs().begin();
  for (size_t i = 0; i < voice.speakers.size(); ++i) {
    if (std::ranges::find(from.speakers, voice.speakers[i]) != from.speakers.end()) continue;
    const std::optional<at::Tensor> vector = vector_of(made, weights, corpus, voice.speakers[i]);
    if (vector) views[static_cast<size_t>(table)][static_cast<int64_t>(i)].copy_(*vector);
  }
  return taken;
}

}  // namespace myxtts
