// One row of a corpus and its clip, checked: accepted with all that is known of it, or rejected with the reason.
#pragma once

#include "corpus/index.h"
#include "corpus/rejection.h"
#include "corpus/rows.h"
#include "features/mel_spec.h"
#include "settings/config.h"

#include <optional>
#include <set>
#include <string>

namespace myxtts {

// Running sums of mel values, for the mean and std over many clips.
struct MelSums {
  double count = 0, sum = 0, squares = 0;
  void add(const MelSums& other);
  double mean() const;
  double std() const;
};

struct ScannedRow {
  CorpusClip clip;
  std::string format;
  std::optional<RejectionReason> rejected;  // nothing: accepted
  std::string truncated;                    // accepted, but cut: how
  MelSums mel;                              // where the clip was decoded
};

// Immutable; any thread.
class Scanner {
 public:
  // Without `texts` a row has none, whatever it says. `symbols`: the only characters that texts may have; null: any.
  // All references are kept.
  Scanner(const CorpusLayout& layout, const Config& config, const MelSpec& mel, bool deep, bool texts,
          const std::set<char32_t>* symbols);

  // The row's text cleaned, as far as it needs no other row.
  ScannedRow check_text(const CorpusRow& row) const;

  // The clip itself, once the text is what becomes tokens.
  void check_clip(const CorpusRow& row, ScannedRow& scanned) const;

 private:
  void stay_inside(const std::filesystem::path& clip) const;
  void read_header(const CorpusRow& row, ScannedRow& scanned) const;
  void decode(const CorpusRow& row, ScannedRow& scanned) const;
  void fit_lengths(ScannedRow& scanned) const;

  const CorpusLayout& layout_;
  const Config& config_;
  const MelSpec& mel_;
  bool deep_, texts_;
  const std::set<char32_t>* symbols_;
};

// The mel of what is used of the clip, at the convention's rate.
MelSums measure_mel(const MelSpec& mel, const CorpusClip& clip);

}  // namespace myxtts
