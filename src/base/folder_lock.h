// A folder that one process writes to. The lock is the process's: it is gone when the process ends, however it ends, so
// a file that a killed one left behind locks nothing. One thread.
#pragma once

#include <filesystem>

namespace myxtts {

class FolderLock {
 public:
  // Throws Error with the other process's id if the folder is locked. The folder is there.
  FolderLock(const char* command, const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  static constexpr const char* file_name = ".lock";

 private:
  bool take(const char* command, const std::filesystem::path& folder);  // false: try again

  int descriptor_ = -1;
};

}  // namespace myxtts
