#include "base/mapped_file.h"

#include "base/error.h"
#include "base/files.h"
#include "base/system_calls.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace myxtts {

// What the signal handler knows of a mapping. Ranges are never freed, but used again.
struct MappedRange {
  std::atomic<uintptr_t> begin{0}, end{0};  // equal: not in use
  std::atomic<bool> cut{false};
  MappedRange* next = nullptr;
};

namespace {

// A signal handler has no argument of ours, so these are global.
std::atomic<MappedRange*> all_ranges{nullptr};
std::mutex ranges_mutex;
struct sigaction handler_before {};

// Puts zeros where the file has no bytes any more. Only calls that are allowed in a signal handler.
void fill_missing_pages(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto* const address = static_cast<std::byte*>(info->si_addr);
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (MappedRange* range = all_ranges.load(); range != nullptr; range = range->next) {
    const uintptr_t begin = range->begin, end = range->end;
    if (at < begin || at >= end) continue;
    const uintptr_t into_page = at % static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    range->cut = true;
    // The bare call: a sanitizer's own mmap is not safe in a signal handler.
    const int64_t zeros = ::syscall(SYS_mmap, address - into_page, end - at + into_page, int64_t{PROT_READ},
                                    int64_t{MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED}, int64_t{-1}, int64_t{0});
    errno = saved_errno;
    if (zeros != -1) return;
  }
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    return handler_before.sa_handler(signal);
  }
  ::sigaction(SIGBUS, &handler_before, nullptr);  // the access is made again, and ends the process
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = fill_missing_pages;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &handler_before);
}

MappedRange* add_range(std::span<const std::byte> bytes) {
  const std::lock_guard lock(ranges_mutex);
  static const bool installed = (install_handler(), true);
  static_cast<void>(installed);
  MappedRange* range = all_ranges;
  while (range != nullptr && range->begin != range->end) range = range->next;
  const bool is_new = range == nullptr;
  if (is_new) range = new MappedRange;
  range->cut = false;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  range->begin = begin, range->end = begin + bytes.size();
  if (is_new) {
    range->next = all_ranges;
    all_ranges = range;
  }
  return range;
}

void remove_range(MappedRange* range) {
  const std::lock_guard lock(ranges_mutex);
  range->end = range->begin.load();
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, const RootFolder* root)
    : file_(std::make_unique<ReadOnlyFile>(path, root)) {
  const uint64_t size = file_->size_bytes();
  if (size == 0) return;
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_->descriptor(), 0);
  if (memory == MAP_FAILED) fail("read", "{}: {}", path.string(), system_reason());
  bytes_ = {static_cast<const std::byte*>(memory), size};
  range_ = add_range(bytes_);
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  remove_range(range_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedFile::whole() const {
  struct stat status {};
  const bool as_long =
      ::fstat(file_->descriptor(), &status) == 0 && static_cast<uint64_t>(status.st_size) >= bytes_.size();
  return as_long && (range_ == nullptr || !range_->cut);
}

}  // namespace myxtts
