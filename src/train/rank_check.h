// What all ranks must have in common. Every function throws the same Error on every rank, with the first difference.
#pragma once

#include "corpus/corpus.h"
#include "settings/config.h"
#include "synth/voice_description.h"
#include "train/optimizer.h"

#include <filesystem>
#include <map>
#include <optional>
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
// `validation` null: there is none.
RankFacts facts_of(const Corpus& corpus, const Corpus* validation);
// But for its settings.
RankFacts facts_of(const VoiceDescription& voice);
// What results depend on, of the machine and what is installed there. -1: a CPU.
RankFacts facts_of_device(int device);

// The weights and what the optimiser keeps of them, to the bit.
void check_same(Ranks& ranks, const std::vector<OptimizerState>& states);

// A checkpoint's path and metadata: rank 0 alone reads one, and all get what it found.
using FoundCheckpoint = std::pair<std::filesystem::path, std::map<std::string, std::string>>;
std::optional<FoundCheckpoint> broadcast(Ranks& ranks, const std::optional<FoundCheckpoint>& found);

// Rank 0's.
void broadcast(Ranks& ranks, std::vector<OptimizerState>& states);

}  // namespace myxtts
