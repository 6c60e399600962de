#include "text/phonemes.h"

#include "base/error.h"
#include "base/process.h"
#include "base/workers.h"
#include "text/clauses.h"
#include "text/phoneme_cache.h"
#include "text/utf8.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace myxtts {
namespace {

constexpr size_t texts_per_process = 400;  // a process costs about 10 ms, a text less than 1 ms
constexpr char marker[] = "zqxmarker";

using Arguments = std::vector<std::string>;

// What is known of espeak-ng with certain arguments. Any thread.
class Expected {
 public:
  static Expected& all() {
    static Expected one;
    return one;
  }

  bool contains(const Arguments& arguments) {
    const std::lock_guard lock(mutex_);
    return of_.contains(arguments);
  }

  // From now on one process waits.
  void expect(const Arguments& arguments, const std::string& marker_ipa) {
    auto waiting = std::make_unique<WaitingProgram>(arguments);
    const std::lock_guard lock(mutex_);
    of_.insert_or_assign(arguments, One{marker_ipa, std::move(waiting)});
  }

  // Empty if it is not expected.
  std::string marker_ipa(const Arguments& arguments) {
    const std::lock_guard lock(mutex_);
    const auto found = of_.find(arguments);
    return found == of_.end() ? std::string() : found->second.marker_ipa;
  }

  // The one that waits; null if there is none. Another one starts.
  std::unique_ptr<WaitingProgram> take(const Arguments& arguments) {
    if (!contains(arguments)) return nullptr;
    auto next = std::make_unique<WaitingProgram>(arguments);
    const std::lock_guard lock(mutex_);
    return std::exchange(of_.at(arguments).waiting, std::move(next));
  }

 private:
  struct One {
    std::string marker_ipa;
    std::unique_ptr<WaitingProgram> waiting;
  };
  std::mutex mutex_;
  std::map<Arguments, One> of_;
};

// Standard output of espeak-ng; empty if it fails. It is far quicker and shorter than the limits.
std::optional<std::string> output_of(const Arguments& arguments, const std::string& text) {
  constexpr double seconds = 30, seconds_per_byte = 1e-3;
  constexpr size_t bytes = size_t{1} << 16, bytes_per_byte = 100;
  const auto length = static_cast<double>(text.size());
  const ProgramLimits limits{seconds + length * seconds_per_byte, bytes + text.size() * bytes_per_byte};
  const auto waiting = text.size() <= WaitingProgram::most_input ? Expected::all().take(arguments) : nullptr;
  ProgramResult done{-1, {}};
  if (waiting) done = waiting->finish(text, limits);
  if (done.status != 0) done = run_program(arguments, limits, text);  // one that waited may have been killed meanwhile
  if (done.status != 0) return {};
  return std::move(done.output);
}

// Removes language flags such as (en) and (fa), which espeak-ng puts around foreign words.
std::string without_language_flags(const std::string& line) {
  std::string out;
  bool in_flag = false;
  for (const char letter : line) {
    if (letter == '(') in_flag = true;
    if (!in_flag) out += letter;
    if (letter == ')') in_flag = false;
  }
  const size_t first = out.find_first_not_of(' ');
  return first == std::string::npos ? std::string() : out.substr(first, out.find_last_not_of(' ') - first + 1);
}

class Espeak {
 public:
  explicit Espeak(const std::string& language) : program_(find_program("espeak-ng")), language_(language) {
    if (program_.empty()) {
      reject_input("text", "phonemes need espeak-ng, which is not installed",
                   way_out("install it with: apt-get install espeak-ng"));
    }
  }

  // Before more than one text. A single one does without, because somebody may be waiting to hear it.
  void learn_marker() {
    marker_ipa_ = Expected::all().marker_ipa(arguments());
    if (!marker_ipa_.empty()) return;
    const std::vector<std::string> lines = marker_lines();
    if (lines.size() == 1) marker_ipa_ = lines.front();
  }

  void expect() {
    if (Expected::all().contains(arguments())) return;
    learn_marker();
    Expected::all().expect(arguments(), marker_ipa_);
  }

  std::vector<std::string> phonemes(const std::vector<std::string>& texts) const {
    auto all = texts.size() > 1 && !marker_ipa_.empty() ? phonemes_in_one_process(texts) : std::nullopt;
    if (all) return *all;
    std::vector<std::string> one_by_one;
    for (const std::string& text : texts) {
      const auto lines = clauses(paragraph(text));
      if (!lines) marker_lines();  // is it the language?
      if (!lines) fail("text", "espeak-ng failed on \"{}\"", text, way_out("take that text out or change it"));
      one_by_one.push_back(fmt::format("{}", fmt::join(*lines, " ")));
    }
    return one_by_one;
  }

 private:
  std::vector<std::string> marker_lines() const {
    auto lines = clauses(marker);
    if (!lines) {
      reject_input("text", "espeak-ng does not support the language '{}'", language_,
                   way_out("`espeak-ng --voices` lists the supported ones"));
    }
    return *std::move(lines);
  }

  // espeak-ng prints one line per clause, so a marker paragraph separates the texts.
  std::optional<std::vector<std::string>> phonemes_in_one_process(const std::vector<std::string>& texts) const {
    std::string document;
    for (const std::string& text : texts) document += paragraph(text) + "\n\n" + marker + "\n\n";
    const auto lines = clauses(document);
    if (!lines) return {};
    std::vector<std::string> ipa(1);
    for (const std::string& line : *lines) {
      if (line == marker_ipa_) {
        ipa.emplace_back();
      } else {
        ipa.back() += (ipa.back().empty() ? "" : " ") + line;
      }
    }
    if (ipa.size() != texts.size() + 1 || !ipa.back().empty()) return {};
    ipa.pop_back();
    return ipa;
  }

  // One line, without "[[", which starts phoneme input.
  static std::string paragraph(const std::string& text) {
    std::string line = text;
    std::ranges::replace_if(
        line, [](char letter) { return letter == '\n' || letter == '\r' || letter == '['; }, ' ');
    return line;
  }

  Arguments arguments() const { return {program_, "-q", "--ipa", "-b", "1", "-v", language_, "-f", "/proc/self/fd/0"}; }

  std::optional<std::vector<std::string>> clauses(const std::string& document) const {
    const auto output = output_of(arguments(), document + "\n");
    if (!output) return {};
    std::vector<std::string> lines;
    std::istringstream stream(*output);
    for (std::string line; std::getline(stream, line);) {
      line = without_language_flags(line);
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }

  std::string program_, language_, marker_ipa_;
};

}  // namespace

namespace {

// IPA of each clause, by its words. See to_phonemes.
PhonemeCache pronounce(const std::set<std::string>& clauses, const std::string& language,
                       const std::filesystem::path& cache_file, size_t threads,
                       const std::function<void(uint64_t, uint64_t)>& progress) {
  PhonemeCache cache = read_phoneme_cache(cache_file);
  std::vector<std::string> asked;
  for (const std::string& clause : clauses) {
    if (!cache.contains({language, clause})) asked.push_back(clause);
  }
  if (asked.empty()) return cache;
  Espeak espeak(language);
  if (asked.size() > 1) espeak.learn_marker();
  std::mutex mutex;
  uint64_t done = 0;
  const auto ask = [&](size_t batch) {
    const auto first = asked.begin() + static_cast<std::ptrdiff_t>(batch * texts_per_process);
    const auto last = first + std::min<std::ptrdiff_t>(texts_per_process, asked.end() - first);
    const std::vector<std::string> batch_texts(first, last);
    const std::vector<std::string> ipa = espeak.phonemes(batch_texts);
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < ipa.size(); ++i) cache[{language, batch_texts[i]}] = ipa[i];
    done += ipa.size();
    if (progress) progress(done, asked.size());
  };
  try {
    parallel_for((asked.size() + texts_per_process - 1) / texts_per_process, threads, ask);
  } catch (...) {
    write_phoneme_cache(cache_file, cache);
    throw;
  }
  write_phoneme_cache(cache_file, cache);
  return cache;
}

}  // namespace

bool phonemes_available() { return !find_program("espeak-ng").empty(); }

bool phonemes_available(const std::string& language) {
  const std::string program = find_program("espeak-ng");
  return !program.empty() && output_of({program, "-q", "--ipa", "-v", language, "a"}, "").has_value();
}

void expect_phonemes(const std::string& language) { Espeak(language).expect(); }

std::vector<std::string> to_phonemes(const std::vector<std::string>& texts, const std::string& language,
                                     const std::filesystem::path& cache_file, size_t threads,
                                     const std::function<void(uint64_t, uint64_t)>& progress) {
  std::vector<std::vector<Clause>> split;
  std::set<std::string> clauses;
  for (const std::string& text : texts) {
    split.push_back(split_clauses(text));
    for (const Clause& clause : split.back()) clauses.insert(clause.words);
  }
  const PhonemeCache cache = pronounce(clauses, language, cache_file, threads, progress);
  std::vector<std::string> all;
  for (const std::vector<Clause>& text : split) {
    std::string& ipa = all.emplace_back();
    for (const Clause& clause : text) {
      const std::string& spoken = cache.at({language, clause.words});
      if (spoken.empty()) continue;
      ipa += (ipa.empty() ? "" : " ") + spoken;
      if (clause.mark != 0) ipa += clause.mark;
    }
  }
  return all;
}

}  // namespace myxtts
