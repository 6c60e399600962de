// Whatever takes batches from a source: a training step, or something that takes as long.
#pragma once

#include "loader/loader.h"

#include <functional>
#include <optional>
#include <string>

namespace myxtts {

struct Consumer {
  std::string name;                           // in words
  std::function<void(const Batch&)> consume;  // returns when the batch is done with
  StreamHandle stream = nullptr;              // what next() is given
  std::function<double()> take_busy_ms = {};  // how long a GPU worked since the last call; empty: there is none
};

}  // namespace myxtts
