#include "session/model_consumer.h"

#include "train/step_consumer.h"

namespace myxtts {

std::optional<ModelConsumer> make_model_consumer(const Config& config, const Corpus& corpus, const BatchPlan& plan,
                                                 const Mode& mode) {
  const auto model = std::make_shared<StepConsumer>(config, corpus, plan, mode);
  return ModelConsumer{model->consumer(), model};
}

}  // namespace myxtts
