#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct {
  char path[512];
  char calls[256];
  enum fault_kind kind;
  int nth, times;
  long from_byte;
  int log;
  long clock_s;
} rule;
static atomic_int armed, seen, raised;

static const char* kinds[] = {"none", "eio", "enospc", "eintr", "short", "ends", "slow"};

void faults_arm(const char* path, enum fault_kind kind, int nth, int times, const char* calls) {
  armed = 0;
  snprintf(rule.path, sizeof rule.path, "%s", path);
  snprintf(rule.calls, sizeof rule.calls, ",%s,", calls ? calls : "");
  rule.kind = kind, rule.nth = nth, rule.times = times;
  seen = raised = 0;
  armed = 1;
}

void faults_disarm(void) { armed = 0; }
int faults_seen(void) { return seen; }
int faults_raised(void) { return raised; }

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void arm_from_environment(void) {
  const char *path = getenv("FAULT_PATH"), *fault = getenv("FAULT"), *log = getenv("FAULT_LOG");
  rule.log = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  rule.from_byte = number("FAULT_FROM_BYTE", 0);
  rule.clock_s = number("FAULT_CLOCK_S", 0);
  if (!path) return;
  enum fault_kind kind = FAULT_NONE;
  for (int i = 0; fault && i < (int)(sizeof kinds / sizeof *kinds); ++i) {
    if (!strcmp(fault, kinds[i])) kind = (enum fault_kind)i;
  }
  faults_arm(path, kind, (int)number("FAULT_NTH", 0), (int)number("FAULT_TIMES", 1), getenv("FAULT_CALLS"));
}

static void* real(const char* name) { return dlsym(RTLD_NEXT, name); }

static int is_meant(const char* call) {
  if (!strcmp(rule.calls, ",,")) return 1;
  char name[32];
  snprintf(name, sizeof name, ",%s,", call);
  return strstr(rule.calls, name) != NULL;
}

// Whether this call on this path is to fail.
static int fails(const char* call, const char* path) {
  if (!armed || !path || !strstr(path, rule.path) || !is_meant(call)) return 0;
  const int now = ++seen;
  if (rule.log >= 0) dprintf(rule.log, "%s %s\n", call, path);
  if (rule.kind == FAULT_NONE) return 0;
  const int hit = rule.nth == 0 ? (rule.kind != FAULT_EINTR || now % 2) : now >= rule.nth && now < rule.nth + rule.times;
  if (!hit) return 0;
  ++raised;
  if (rule.kind == FAULT_SLOW) {
    usleep(20000);
    return 0;
  }
  errno = rule.kind == FAULT_EIO ? EIO : rule.kind == FAULT_ENOSPC ? ENOSPC : EINTR;
  return 1;
}

static const char* path_of(int file, char* path, size_t size) {
  char link[64];
  const int saved = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, size - 1);
  errno = saved;
  if (length <= 0) return NULL;
  path[length] = 0;
  return path;
}

// For calls that move bytes: how many to ask for, or -1 to fail.
static ssize_t bytes_for(const char* call, int file, size_t count, off_t at) {
  char path[4096];
  if (!armed || (at >= 0 && at < rule.from_byte) || !fails(call, path_of(file, path, sizeof path))) return (ssize_t)count;
  if (rule.kind == FAULT_SHORT) return count > 777 ? 777 : (ssize_t)count;
  if (rule.kind == FAULT_ENDS) return 0;
  return -1;
}

#define MOVES(name, type, ...)                                        \
  ssize_t name(int file, type bytes, size_t count) {                  \
    const ssize_t asked = bytes_for(#name, file, count, -1);          \
    if (asked < 0) return -1;                                         \
    return ((ssize_t(*)(int, type, size_t))real(#name))(file, bytes, (size_t)asked); \
  }
#define MOVES_AT(name, alias, type)                                                  \
  ssize_t name(int file, type bytes, size_t count, off_t at) {                       \
    const ssize_t asked = bytes_for(#alias, file, count, at);                        \
    if (asked < 0) return -1;                                                        \
    return ((ssize_t(*)(int, type, size_t, off_t))real(#name))(file, bytes, (size_t)asked, at); \
  }
MOVES(read, void*)
MOVES(write, const void*)
MOVES_AT(pread, pread, void*)
MOVES_AT(pread64, pread, void*)
MOVES_AT(pwrite, pwrite, const void*)
MOVES_AT(pwrite64, pwrite, const void*)

ssize_t writev(int file, const struct iovec* parts, int count) {
  char path[4096];
  if (armed && fails("writev", path_of(file, path, sizeof path)) && rule.kind != FAULT_SHORT) return -1;
  return ((ssize_t(*)(int, const struct iovec*, int))real("writev"))(file, parts, count);
}

#define OPENS(name)                                                                \
  int name(const char* path, int flags, ...) {                                     \
    va_list more;                                                                  \
    va_start(more, flags);                                                         \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                  \
    if (fails("open", path) && rule.kind < FAULT_SHORT) return -1;                 \
    return ((int (*)(const char*, int, ...))real(#name))(path, flags, mode);       \
  }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                             \
  int name(int folder, const char* path, int flags, ...) {                         \
    va_list more;                                                                  \
    va_start(more, flags);                                                         \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                  \
    if (fails("openat", path) && rule.kind < FAULT_SHORT) return -1;               \
    return ((int (*)(int, const char*, int, ...))real(#name))(folder, path, flags, mode); \
  }
OPENS_AT(openat)
OPENS_AT(openat64)

DIR* opendir(const char* path) {
  if (fails("opendir", path) && rule.kind < FAULT_SHORT) return NULL;
  return ((DIR * (*)(const char*)) real("opendir"))(path);
}

// A listing that fails, or ends early.
#define LISTS(name, type)                                                                        \
  struct type* name(DIR* folder) {                                                               \
    char path[4096];                                                                             \
    const int before = errno;                                                                    \
    if (armed && fails("readdir", path_of(dirfd(folder), path, sizeof path)) && rule.kind != FAULT_SHORT) { \
      if (rule.kind == FAULT_ENDS) errno = before;                                               \
      return NULL;                                                                               \
    }                                                                                            \
    return ((struct type * (*)(DIR*)) real(#name))(folder);                                      \
  }
LISTS(readdir, dirent)
LISTS(readdir64, dirent64)

// A mapping is never interrupted. A file that ends is cut to half its length once it is mapped.
#define MAPS(name)                                                                                \
  void* name(void* at, size_t size, int protection, int flags, int file, off_t first) {           \
    char path[4096];                                                                              \
    const int hit = armed && file >= 0 && fails("mmap", path_of(file, path, sizeof path));        \
    if (hit && rule.kind < FAULT_EINTR) return MAP_FAILED;                                        \
    void* const mapped = ((void* (*)(void*, size_t, int, int, int, off_t))real(#name))(at, size, protection, flags, file, first); \
    if (hit && rule.kind == FAULT_ENDS && truncate(path, (off_t)(size / 2)) != 0) abort();        \
    return mapped;                                                                                \
  }
MAPS(mmap)
MAPS(mmap64)

#define ON_FILE(name, alias)                                                                   \
  int name(int file) {                                                                         \
    char path[4096];                                                                           \
    if (armed && fails(#alias, path_of(file, path, sizeof path)) && rule.kind < FAULT_SHORT) return -1; \
    return ((int (*)(int))real(#name))(file);                                                  \
  }
ON_FILE(fsync, fsync)
ON_FILE(fdatasync, fsync)

// It is closed whatever it returns, as on Linux; EINTR would make libraries close it twice.
int close(int file) {
  char path[4096];
  const int hit = armed && fails("close", path_of(file, path, sizeof path)) && rule.kind < FAULT_EINTR;
  const int error = errno, result = ((int (*)(int))real("close"))(file);
  if (!hit) return result;
  errno = error;
  return -1;
}

#define ON_LENGTH(name)                                                                           \
  int name(int file, off_t length) {                                                              \
    char path[4096];                                                                              \
    if (armed && fails("ftruncate", path_of(file, path, sizeof path)) && rule.kind < FAULT_SHORT) return -1; \
    return ((int (*)(int, off_t))real(#name))(file, length);                                      \
  }
ON_LENGTH(ftruncate)
ON_LENGTH(ftruncate64)

#define ON_TWO_PATHS(name)                                                    \
  int name(const char* from, const char* to) {                                \
    if (fails(#name, to) && rule.kind < FAULT_SHORT) return -1;               \
    return ((int (*)(const char*, const char*))real(#name))(from, to);        \
  }
ON_TWO_PATHS(rename)
ON_TWO_PATHS(link)

#define ON_PATH(name)                                              \
  int name(const char* path) {                                     \
    if (fails(#name, path) && rule.kind < FAULT_SHORT) return -1;  \
    return ((int (*)(const char*))real(#name))(path);              \
  }
ON_PATH(unlink)
ON_PATH(remove)

int clock_gettime(clockid_t clock, struct timespec* time) {
  static atomic_int looks;
  const int result = ((int (*)(clockid_t, struct timespec*))real("clock_gettime"))(clock, time);
  if (rule.clock_s != 0 && clock == CLOCK_REALTIME) time->tv_sec += ++looks % 2 ? rule.clock_s : -rule.clock_s;
  return result;
}
