// A read-only memory-mapped file that may be cut short while it is mapped, by a failing disk for instance. Then its
// missing pages read as zeros and `whole()` is false, where the system would end the process with SIGBUS: what is read
// must be checked, by a checksum or by `whole()` afterwards. Any thread.
//
// The first mapping installs a handler for SIGBUS; a SIGBUS at other addresses goes to the handler before it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace myxtts {

class ReadOnlyFile;
class RootFolder;
struct MappedRange;

class MappedFile {
 public:
  // The file must lie in `root`, if there is one.
  explicit MappedFile(const std::filesystem::path& path, const RootFolder* root = nullptr);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  // The file is still as long as when it was mapped, and no page of it was missing.
  bool whole() const;

 private:
  std::unique_ptr<ReadOnlyFile> file_;
  std::span<const std::byte> bytes_;
  MappedRange* range_ = nullptr;
};

}  // namespace myxtts
