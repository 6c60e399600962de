// Generates a synthetic corpus in LJSpeech layout. Deterministic: equal settings and seed give equal bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace myxtts {

struct DemoCorpusSettings {
  int clips = 100;
  int speakers = 1;  // above 1, metadata.csv has the columns id|speaker|text
  uint64_t seed = 1;
  std::string language = "en";
  std::string voice = "formant";  // or "espeak-ng", if installed
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
