// What happens to a clip that cannot be read: the plan names another, always the same one.
#pragma once

#include "corpus/corpus.h"
#include "corpus/quarantine.h"
#include "plan/batch_plan.h"

#include <functional>
#include <vector>

namespace myxtts {

// Calls `load` with the clip and, while that throws Error, with the substitutes that the plan names. What could not be
// read is added to `bad`. Returns the number of the clip that was loaded; throws Error when there is none. A plan that
// visits every clip has no substitutes: the row stays empty, and no_clip is returned.
uint32_t load_or_replace(const Corpus& corpus, const BatchPlan& plan, size_t shape, uint32_t number,
                         std::vector<BadClip>& bad, const std::function<void(const CorpusClip&)>& load);

}  // namespace myxtts
