// `prepare`: a corpus indexed and checked before any training, and advice on it.
#pragma once

#include "corpus/advice.h"
#include "session/open.h"

#include <string>
#include <vector>

namespace myxtts {

struct PreparedCorpus {
  Corpus corpus;
  std::vector<Advice> advice;
};

// `deep` decodes every clip. A file that has changed since is indexed again.
PreparedCorpus prepare_corpus(const std::string& where, const Config& config, bool deep,
                              const SessionListener& listener);

}  // namespace myxtts
