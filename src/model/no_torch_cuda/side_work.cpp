#include "model/side_work.h"

namespace myxtts {

void run_beside(int, std::function<void()> work) { work(); }

void join_beside(int, size_t) {}

}  // namespace myxtts
