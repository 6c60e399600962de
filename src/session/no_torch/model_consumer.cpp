#include "session/model_consumer.h"

namespace myxtts {

std::optional<ModelConsumer> make_model_consumer(const Config&, const Corpus&, const BatchPlan&, const Mode&) {
  return std::nullopt;
}

}  // namespace myxtts
