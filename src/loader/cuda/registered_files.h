// Packed shards as memory that the GPU copies from directly: mapped, and registered with CUDA, so that no CPU touches a
// sample. Any thread.
#pragma once

#include "base/mapped_file.h"
#include "base/memory.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace myxtts {

class RegisteredFiles {
 public:
  explicit RegisteredFiles(int device) : device_(device) {}
  ~RegisteredFiles();
  RegisteredFiles(const RegisteredFiles&) = delete;
  RegisteredFiles& operator=(const RegisteredFiles&) = delete;

  // The file's bytes, or nothing where it cannot be registered or has been cut short: then it is read like any other
  // file. Registering locks a file in memory, so no more than half of what this process may have is used.
  //
  // A file that is cut short after this, while the GPU copies, keeps its locked pages: what is copied are the samples
  // of before, but for zeros after the cut in the one page where it lies. No later batch gets the file.
  std::span<const std::byte> bytes_of(const std::filesystem::path& path);

 private:
  struct File {
    std::unique_ptr<MappedFile> mapped;
    bool registered = false;
  };
  const int device_;
  std::mutex mutex_;
  std::map<std::string, File> files_;
  const uint64_t max_bytes_ = host_memory().total_bytes / 2;
  uint64_t registered_bytes_ = 0;
};

}  // namespace myxtts
