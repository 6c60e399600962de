// What all ranks must have in common. Every function throws the same Error on every rank, with the first difference.
#pragma once

#include "corpus/corpus.h"
#include "settings/config.h"
#include "train/optimizer.h"

#include <string>
#include <utility>
#include <vector>

namespace myxtts {

class Ranks;

// Names and values, the same names in the same order.
using RankFacts = std::vector<std::pair<std::string, std::string>>;
void check_same(Ranks& ranks, const RankFacts& facts);

// But for paths, and for how a machine loads its batches.
RankFacts facts_of(const Config& config);
RankFacts facts_of(const Corpus& corpus);

// The weights and what the optimiser keeps of them, to the bit.
void check_same(Ranks& ranks, const std::vector<OptimizerState>& states);

// Rank 0's.
void broadcast(Ranks& ranks, std::vector<OptimizerState>& states);

}  // namespace myxtts
