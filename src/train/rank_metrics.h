// Metrics of a run over several ranks, from what each measured of itself.
#pragma once

#include "corpus/quarantine.h"
#include "train/metrics.h"

#include <vector>

namespace myxtts {

class Ranks;

// Speeds become those of all ranks together, the input wait that of the rank that waited longest. Adds each rank's own
// time per step, which is without waiting for others, and names the slowest.
void merge_metrics(Ranks& ranks, double ranks_wait_ms, StepMetrics& metrics);

// The clips that any rank had to replace, on every rank.
std::vector<BadClip> gather_replaced(Ranks& ranks, const std::vector<BadClip>& own);

}  // namespace myxtts
