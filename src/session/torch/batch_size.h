// The batch size, if data.batch_size is a range: the largest that memory allows, or the one that a resumed run was
// trained with.
#pragma once

#include "corpus/corpus.h"
#include "loader/mode.h"
#include "session/listener.h"
#include "settings/config.h"

namespace myxtts {

// Fixes config.data.batch_size and reports why. `reset`: an earlier run does not count.
// A batch is that of all ranks, and they share it equally.
void settle_batch_size(Config& config, const Corpus& corpus, const Mode& mode, bool reset, int64_t ranks,
                       const SessionListener& listener);

}  // namespace myxtts
