// Generates a synthetic corpus: in LJSpeech layout, or as a JSON-lines manifest if it has several speakers or
// languages. Deterministic: equal settings and seed give equal bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace myxtts {

struct DemoCorpusSettings {
  int clips = 100;
  int speakers = 1;
  uint64_t seed = 1;
  std::vector<std::string> languages = {"en"};
  std::filesystem::path texts;    // what to say, one text per line, perhaps LANGUAGE|TEXT; empty: made-up sentences
  std::string voice = "formant";  // or, if espeak-ng is installed, "espeak-ng" or "espeak-ng+VARIANT"
  std::string format = "wav";     // wav, flac, mp3, ogg
  int sample_rate = 22050;
};

struct DemoCorpusSummary {
  int clips = 0;
  double seconds = 0;
};

// Calls `progress(clips_done)` from any of its threads, one at a time. Rejects a folder that holds another corpus.
DemoCorpusSummary make_demo_corpus(const std::filesystem::path& folder, const DemoCorpusSettings& settings,
                                   const std::function<void(int)>& progress);

}  // namespace myxtts
