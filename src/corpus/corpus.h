// A corpus ready to be fed: its index opened, or made first if there is none that fits.
#pragma once

#include "corpus/index.h"
#include "features/mel_spec.h"
#include "settings/config.h"
#include "text/vocabulary.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace myxtts {

struct PrepareOptions {
  bool deep = false;                            // decode every clip
  bool check_files = false;                     // also make a new index when a clip's file has changed
  bool validation = true;                       // hold out data.val_share of the clips
  bool texts = true;                            // false: whatever they are, they are not used
  const std::set<char32_t>* symbols = nullptr;  // the only characters that texts may have
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  std::function<void(const std::string&)> say = {};  // why an index is rebuilt, what the tokens are
};

// Immutable once its speakers are numbered; any thread.
struct Corpus {
  std::filesystem::path folder;
  MelSpec mel;
  CorpusIndex index;
  Vocabulary vocabulary;
  std::string text_tokens;  // characters or phonemes
  bool blank_tokens = false;
  // Numbers of its speakers and languages in the voice that is trained on it, -1 for one that the voice does not know;
  // empty: those of the index.
  std::vector<int32_t> speaker_numbers = {}, language_numbers = {};
  std::shared_ptr<const RootFolder> root = {};  // what its clips must lie in; null: data.allow_outside

  // As it can be opened.
  CorpusClip clip(size_t number) const;

  // Numbers speakers and languages as `speakers` and `languages` do.
  void number_as(const std::vector<std::string>& speakers, const std::vector<std::string>& languages);
  int32_t speaker_number(const ClipLabels& labels) const;
  int32_t language_number(const ClipLabels& labels) const;
};

Corpus open_corpus(const std::filesystem::path& where, const Config& config, const PrepareOptions& options);

}  // namespace myxtts
