// `train`: from settings to a trained voice.
#pragma once

#include "session/listener.h"
#include "settings/config.h"
#include "train/train.h"

#include <atomic>

namespace myxtts {

// Opens the corpora, settles what is automatic, trains. `begin` is called once, when all input is known to be good.
// `from`: a voice to begin with, or empty.
TrainSummary train_session(Config config, bool reset, const std::string& from, const SessionListener& listener,
                           const TrainListener& trained, const std::atomic<bool>& stop,
                           const std::function<void()>& begin);

}  // namespace myxtts
