#include "demo/demo_corpus.h"

#include "audio/clip.h"
#include "audio/codec.h"
#include "audio/resample.h"
#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/random.h"
#include "base/workers.h"
#include "demo/voice.h"
#include "demo/words.h"

#include <mutex>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr const char* marker_name = "demo-corpus.txt";
constexpr const char* espeak_variants[] = {"", "+f2", "+m3", "+f4", "+m1", "+f1", "+m7", "+f3"};

struct Row {
  std::string id;
  int speaker;
  std::string text;
  uint64_t seed;
};

std::vector<Row> make_rows(const DemoCorpusSettings& settings) {
  std::vector<Row> rows;
  for (int i = 0; i < settings.clips; ++i) {
    const uint64_t seed = Random::mix(settings.seed * 1'000'003 + static_cast<uint64_t>(i));
    Random random(seed);
    const int speaker = i % settings.speakers;
    rows.push_back({fmt::format("demo-{:05}", i + 1), speaker, demo_sentence(settings.language, random), seed});
  }
  return rows;
}

std::vector<float> speak_with_espeak(const std::string& program, const Row& row, const DemoCorpusSettings& settings,
                                     const fs::path& scratch) {
  const char* variant = espeak_variants[row.speaker % std::size(espeak_variants)];
  const std::string language = settings.language == "en" ? "en-us" : settings.language;
  const fs::path spoken = scratch / (row.id + ".espeak.wav");
  const int status = run_program({program, "-v", language + variant, "-w", spoken.string(), "--", row.text});
  if (status != 0) fail("demo-data", "espeak-ng ended with status {} for '{}'", status, row.text);
  Clip clip = read_clip(spoken);
  fs::remove(spoken);
  return resample(clip.samples, clip.sample_rate, settings.sample_rate);
}

void check(const fs::path& folder, const DemoCorpusSettings& settings) {
  const auto one_of = [](const std::string& what, const std::string& value, const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      reject_input("demo-data", "--{} is '{}'", what, value, way_out("it must be one of {}", fmt::join(known, ", ")));
    }
  };
  one_of("language", settings.language, demo_languages());
  one_of("voice", settings.voice, {"formant", "espeak-ng"});
  one_of("format", settings.format, {"wav", "flac", "mp3", "ogg"});
  if (settings.clips < 1 || settings.clips > 10'000'000) {
    reject_input("demo-data", "--clips is {}", settings.clips, way_out("it must be from 1 to 10000000"));
  }
  if (settings.speakers < 1 || settings.speakers > 1000) {
    reject_input("demo-data", "--speakers is {}", settings.speakers, way_out("it must be from 1 to 1000"));
  }
  if (settings.sample_rate < 8000 || settings.sample_rate > 192000) {
    reject_input("demo-data", "--sample-rate is {}", settings.sample_rate, way_out("it must be from 8000 to 192000"));
  }
  if (fs::exists(folder) && !fs::is_directory(folder))
    reject_input("demo-data", "{} is a file", folder.string(), way_out("name a folder"));
  if (fs::exists(folder) && !fs::is_empty(folder) && !fs::exists(folder / marker_name)) {
    reject_input("demo-data", "{} holds something that is not a demo corpus", folder.string(),
                 way_out("name another folder"));
  }
}

}  // namespace

DemoCorpusSummary make_demo_corpus(const fs::path& folder, const DemoCorpusSettings& settings,
                                   const std::function<void(int)>& progress) {
  check(folder, settings);
  const std::string espeak = settings.voice == "espeak-ng" ? find_program("espeak-ng") : std::string();
  if (settings.voice == "espeak-ng" && espeak.empty()) {
    reject_input("demo-data", "espeak-ng is not installed",
                 way_out("install the package espeak-ng, or leave --voice out"));
  }
  fs::create_directories(folder / "wavs");
  for (const auto& entry : fs::directory_iterator(folder / "wavs")) {  // an earlier demo's clips
    if (entry.is_regular_file() && entry.path().filename().string().starts_with("demo-")) fs::remove(entry);
  }
  write_file_atomically(folder / marker_name, "Made by `myxtts demo-data`; safe to delete.\n");

  const std::vector<Row> rows = make_rows(settings);
  std::mutex mutex;
  DemoCorpusSummary summary;
  parallel_for(rows.size(), available_cores(), [&](size_t i) {
    const Row& row = rows[i];
    const std::vector<float> samples =
        espeak.empty() ? synthesize(row.text, demo_speaker(row.speaker), settings.sample_rate, row.seed)
                       : speak_with_espeak(espeak, row, settings, folder);
    const fs::path path = folder / "wavs" / (row.id + "." + settings.format);
    if (settings.format == "wav") {
      write_wav(path, samples, settings.sample_rate);
    } else {
      codec_write(path, settings.format, samples, settings.sample_rate);
    }
    const std::lock_guard lock(mutex);
    summary.seconds += static_cast<double>(samples.size()) / settings.sample_rate;
    progress(++summary.clips);
  });

  std::string metadata;
  for (const Row& row : rows) {
    metadata += settings.speakers == 1 ? fmt::format("{}|{}|{}\n", row.id, row.text, row.text)
                                       : fmt::format("{}|speaker-{}|{}\n", row.id, row.speaker + 1, row.text);
  }
  write_file_atomically(folder / "metadata.csv", metadata);
  return summary;
}

}  // namespace myxtts
