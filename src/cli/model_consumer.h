// The model as a consumer of batches, where the program was built with one.
#pragma once

#include "base/config.h"
#include "corpus/plan.h"
#include "pipeline/consumer.h"
#include "pipeline/mode.h"

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
