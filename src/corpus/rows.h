// The rows of a corpus in any of the layouts it may have, one after the other:
//   a folder with metadata.csv, or metadata_train.csv and metadata_eval.csv, and wavs/   (fields between pipes, no
//   quoting) a JSON-lines manifest: audio_filepath, text, and perhaps id, speaker, language, duration a folder of tar
//   shards: KEY.wav with KEY.txt or KEY.json, or packed by `prepare --pack`
// UTF-8; a byte-order mark and CRLF are tolerated.
#pragma once

#include "audio/clip.h"
#include "corpus/rejection.h"
#include "settings/config.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

struct CorpusRow {
  int64_t line = 0;  // counted from 1; in a tar, the clip's number
  std::string id;
  std::string speaker;                     // empty: not named
  std::string language;                    // empty: data.language
  std::string text;                        // the normalised text where there is one
  std::optional<ClipPlace> place;          // otherwise it is wavs/ID with one of the usual endings
  uint64_t hash = 0;                       // of its bytes, where a packed corpus tells; 0: not known
  double seconds = 0;                      // as the manifest says; 0: it does not
  bool held_out = false;                   // for validation
  std::optional<RejectionReason> problem;  // why the row itself cannot be used
};

struct CorpusLayout {
  enum class Kind { metadata, manifest, tar };
  Kind kind = Kind::metadata;
  std::filesystem::path folder;  // clips' paths start here
  std::vector<std::filesystem::path> files;
  bool has_validation = false;                  // the last file is for validation, or the shards say which clips are
  std::shared_ptr<const RootFolder> root = {};  // what clips must lie in; null: data.allow_outside
};

// Throws Error that names what a corpus may look like.
CorpusLayout find_layout(const std::filesystem::path& where);

uint64_t count_rows(const CorpusLayout& layout);  // about: for a progress bar
void read_rows(const CorpusLayout& layout, const std::string& metadata_format,
               const std::function<void(CorpusRow&&)>& take);

}  // namespace myxtts
