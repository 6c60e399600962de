// How the process keeps the memory that it has freed (glibc).
#pragma once

namespace myxtts {

// All threads share so many heaps, so that what one has freed serves another. Call before threads begin.
void share_heaps(int count);

// For steps that take and free the same large blocks again and again: they are kept, because the system would clear
// each page anew.
void keep_freed_memory();

}  // namespace myxtts
