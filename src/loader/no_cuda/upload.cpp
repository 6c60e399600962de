#include "loader/upload.h"

#include "base/error.h"

namespace myxtts {

std::unique_ptr<BatchSource> upload_when_taken(std::unique_ptr<BatchSource>, int, size_t) {
  reject_input("loader", "this program was built without CUDA", way_out("use --device cpu"));
}

}  // namespace myxtts
