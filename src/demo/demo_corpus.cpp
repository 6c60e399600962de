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
#include <sstream>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr const char* marker_name = "demo-corpus.txt";
constexpr std::string_view espeak_voice = "espeak-ng";
// Voices of espeak-ng that sound like people, more or less. Not Andrea: to the base voice it must stay new, for
// tools/demo.
constexpr const char* espeak_variants[] = {
    "",        "+f2",      "+m3",       "+f4",     "+m1",    "+f1",    "+m7",      "+f3",      "+m2",
    "+f5",     "+m4",      "+m5",       "+m6",     "+m8",    "+klatt", "+klatt2",  "+klatt3",  "+Alex",
    "+Andy",   "+Annie",   "+Gene",     "+Hugo",   "+Jacky", "+Lee",   "+Mario",   "+Michael", "+Mike",
    "+adam",   "+belinda", "+benjamin", "+boris",  "+caleb", "+david", "+edward",  "+gustave", "+john",
    "+linda",  "+marcelo", "+max",      "+miguel", "+pablo", "+paul",  "+pedro",   "+quincy",  "+rob",
    "+robert", "+steph",   "+travis",   "+victor", "+zac",   "+anika", "+norbert", "+sandro",  "+shelby"};

// How a speaker speaks by espeak-ng: a voice, and beyond the first round of voices a pitch and a rate of its own.
struct EspeakSpeaker {
  std::string variant;
  int pitch = 50, words_per_minute = 175;  // espeak-ng's defaults
};

EspeakSpeaker espeak_speaker(int number) {
  EspeakSpeaker speaker;
  speaker.variant = espeak_variants[static_cast<size_t>(number) % std::size(espeak_variants)];
  if (number < 8) return speaker;
  Random random(static_cast<uint64_t>(number) * 7919);
  speaker.pitch = static_cast<int>(random.uniform(25, 80));
  speaker.words_per_minute = static_cast<int>(random.uniform(140, 210));
  return speaker;
}

// espeak-ng+VARIANT is one voice of its own.
bool names_variant(const DemoCorpusSettings& settings) {
  return settings.voice.size() > espeak_voice.size() + 1 && settings.voice.starts_with(espeak_voice) &&
         settings.voice[espeak_voice.size()] == '+';
}

struct Row {
  std::string id;
  int speaker;
  std::string language, text;
  uint64_t seed;
};

struct Text {
  std::string language, text;
};

// LANGUAGE|TEXT, or a text in the first language.
std::vector<Text> read_texts(const DemoCorpusSettings& settings) {
  constexpr uint64_t longest = uint64_t{1} << 30;
  std::vector<Text> texts;
  std::istringstream lines(read_text_file(settings.texts, longest));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const size_t pipe = line.find('|');
    Text text{settings.languages.front(), line};
    if (pipe != std::string::npos) text = {line.substr(0, pipe), line.substr(pipe + 1)};
    if (text.text.find_first_not_of(" \t") != std::string::npos) texts.push_back(std::move(text));
  }
  if (texts.empty()) reject_input("demo-data", "{} holds no text", settings.texts.string());
  return texts;
}

// Speakers in turn, languages and texts at random, so that none belongs to another.
std::vector<Row> make_rows(const DemoCorpusSettings& settings) {
  const std::vector<Text> texts = settings.texts.empty() ? std::vector<Text>() : read_texts(settings);
  std::vector<Row> rows;
  for (int i = 0; i < settings.clips; ++i) {
    const uint64_t seed = Random::mix(settings.seed * 1'000'003 + static_cast<uint64_t>(i));
    Random random(seed);
    Text said;
    if (texts.empty()) {
      const size_t count = settings.languages.size();
      said.language = count == 1 ? settings.languages.front() : settings.languages[random.below(count)];
      said.text = demo_sentence(said.language, random);
    } else {
      said = texts[random.below(texts.size())];
    }
    rows.push_back({fmt::format("demo-{:05}", i + 1), i % settings.speakers, said.language, said.text, seed});
  }
  return rows;
}

std::vector<float> speak_with_espeak(const std::string& program, const Row& row, const DemoCorpusSettings& settings,
                                     const fs::path& scratch) {
  EspeakSpeaker speaker = espeak_speaker(row.speaker);
  if (names_variant(settings)) speaker.variant = settings.voice.substr(espeak_voice.size());
  const std::string language = row.language == "en" ? "en-us" : row.language;
  const fs::path spoken = scratch / (row.id + ".espeak.wav");
  constexpr ProgramLimits limits{60, size_t{1} << 16};
  const auto done = run_program({program, "-v", language + speaker.variant, "-p", std::to_string(speaker.pitch), "-s",
                                 std::to_string(speaker.words_per_minute), "-w", spoken.string(), "--", row.text},
                                limits);
  if (done.status != 0) fail("demo-data", "espeak-ng ended with status {} for '{}'", done.status, row.text);
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
  if (settings.languages.empty()) reject_input("demo-data", "--languages names none");
  for (const std::string& language : settings.languages) {
    if (settings.texts.empty()) one_of("languages", language, demo_languages());
    if (settings.voice == "formant") one_of("languages", language, formant_languages());
  }
  if (!settings.texts.empty() && settings.voice == "formant") {
    reject_input("demo-data", "--texts needs words that are spoken", way_out("add --voice espeak-ng"));
  }
  if (!names_variant(settings)) one_of("voice", settings.voice, {"formant", "espeak-ng", "espeak-ng+VARIANT"});
  if (names_variant(settings) && settings.speakers != 1) {
    reject_input("demo-data", "--voice {} is one voice, but --speakers is {}", settings.voice, settings.speakers,
                 way_out("leave one of them out"));
  }
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

void write_rows(const fs::path& folder, const std::vector<Row>& rows, const DemoCorpusSettings& settings) {
  const bool labelled = settings.speakers > 1 || settings.languages.size() > 1 || !settings.texts.empty();
  std::string lines;
  for (const Row& row : rows) {
    if (!labelled) {
      lines += fmt::format("{}|{}|{}\n", row.id, row.text, row.text);
      continue;
    }
    const nlohmann::ordered_json line = {{"audio_filepath", fmt::format("wavs/{}.{}", row.id, settings.format)},
                                         {"text", row.text},
                                         {"speaker", fmt::format("speaker-{}", row.speaker + 1)},
                                         {"language", row.language}};
    lines += line.dump() + "\n";
  }
  fs::remove(folder / (labelled ? "metadata.csv" : "manifest.jsonl"));  // an earlier demo's
  write_file_atomically(folder / (labelled ? "manifest.jsonl" : "metadata.csv"), lines);
}

}  // namespace

DemoCorpusSummary make_demo_corpus(const fs::path& folder, const DemoCorpusSettings& settings,
                                   const std::function<void(int)>& progress) {
  check(folder, settings);
  const std::string espeak = settings.voice == "formant" ? std::string() : find_program("espeak-ng");
  if (settings.voice != "formant" && espeak.empty()) {
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

  write_rows(folder, rows, settings);
  return summary;
}

}  // namespace myxtts
