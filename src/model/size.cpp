#include "model/size.h"

#include "base/error.h"

namespace myxtts {

const ModelSize& model_size(std::string_view name) {
  for (const ModelSize& size : model_sizes) {
    if (size.name == name) return size;
  }
  reject_setting("config", "model.size", "is '{}'", name, way_out("it may be tiny, small, normal or big"));
}

}  // namespace myxtts
