// A folder of files from anywhere, such as a corpus: none of its paths opens a file outside of it, whether by `..`, by
// an absolute path or by a symlink. Owns one descriptor. Immutable; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace myxtts {

class RootFolder {
 public:
  explicit RootFolder(const std::filesystem::path& folder);
  ~RootFolder();
  RootFolder(const RootFolder&) = delete;
  RootFolder& operator=(const RootFolder&) = delete;

  // Where a file really is, links followed, if that is not in the folder.
  std::optional<std::filesystem::path> outside(const std::filesystem::path& file) const;

  // A descriptor for reading, or -1 with `errno`. Throws Error if the file is outside, even if a link has only just
  // been put in its place.
  int open(const std::filesystem::path& file) const;

 private:
  bool holds(const std::filesystem::path& real) const;

  std::string prefix_;          // of the paths in it
  std::filesystem::path real_;  // without links
  int descriptor_ = -1;
};

}  // namespace myxtts
