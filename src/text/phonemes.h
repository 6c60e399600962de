// Grapheme-to-phoneme conversion by espeak-ng as a separate process: it is not linked, and may be missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace myxtts {

bool phonemes_available();                             // whether espeak-ng is installed
bool phonemes_available(const std::string& language);  // and supports the language

// IPA of each text, its clauses separated by their punctuation (see clauses.h). Runs espeak-ng on many clauses per
// process, on `threads` threads, and caches results in `cache_file` (empty: no cache). `progress(done, total)` counts
// clauses that were not cached; one thread calls it at a time. `language` is one of `espeak-ng --voices`. Throws Error
// if espeak-ng is missing, does not support the language or fails; earlier results stay cached.
std::vector<std::string> to_phonemes(const std::vector<std::string>& texts, const std::string& language,
                                     const std::filesystem::path& cache_file, size_t threads,
                                     const std::function<void(uint64_t, uint64_t)>& progress);

// Keeps an espeak-ng started for the next texts of this language, until this process ends: somebody waits to hear them.
// Throws what to_phonemes() throws. Any thread; not before a fork.
void expect_phonemes(const std::string& language);

}  // namespace myxtts
