#include "base/heap.h"

#include <limits>

#include <malloc.h>

namespace myxtts {

void share_heaps(int count) { mallopt(M_ARENA_MAX, count); }

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace myxtts
