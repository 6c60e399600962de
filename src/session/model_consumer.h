// The model as a consumer of batches, where the program was built with one.
#pragma once

#include "loader/consumer.h"
#include "loader/mode.h"
#include "plan/batch_plan.h"
#include "settings/config.h"

#include <memory>

namespace myxtts {

struct ModelConsumer {
  Consumer consumer;
  std::shared_ptr<void> model;  // what the consumer refers to
};

// Nothing where the program has no libtorch.
std::optional<ModelConsumer> make_model_consumer(const Config& config, const Corpus& corpus, const BatchPlan& plan,
                                                 const Mode& mode);

}  // namespace myxtts
