// What `prepare` found, as lines for a terminal, as JSON and as a page. Keeps a reference to the corpus.
#pragma once

#include "corpus/advice.h"
#include "corpus/corpus.h"
#include "plan/shapes.h"

#include <map>
#include <string>
#include <vector>

namespace myxtts {

class PrepareReport {
 public:
  PrepareReport(const std::string& where, const Corpus& corpus, const DataConfig& data, std::vector<Advice> advice);

  std::vector<std::string> lines() const;
  std::string to_json() const;
  std::string to_html() const;  // one file, nothing loaded from elsewhere

 private:
  std::vector<SpeakerTime> longest_first() const;
  void add_speakers(std::vector<std::string>& lines) const;
  void add_advice(std::vector<std::string>& lines) const;

  std::string where_;
  const Corpus& corpus_;
  const CorpusSummary& summary_;
  std::vector<Advice> advice_;
  ShapePlan plan_;
  double padding_of_one_shape_ = 0;
  size_t held_out_ = 0;
  std::map<int64_t, int64_t> frames_, tokens_;  // histograms: lower bound -> clips
};

}  // namespace myxtts
