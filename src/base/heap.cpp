#include "base/heap.h"

#include <limits>

#include <malloc.h>

namespace myxtts {

void share_heaps(int count) { mallopt(M_ARENA_MAX, count); }

void keep_freed_memory() {
  constexpr int largest = 32 << 20;  // that glibc accepts; larger blocks come from the system each time
  mallopt(M_MMAP_THRESHOLD, largest);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  share_heaps(1);
}

}  // namespace myxtts
