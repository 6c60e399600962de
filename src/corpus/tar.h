// Uncompressed tar files: where their members lie, and writing them. ustar, with pax and GNU long names and sizes.
//
// Reading looks at headers alone, so a shard of a gigabyte is listed without reading its clips. A damaged file throws
// Error with path, byte offset and reason.
#pragma once

#include "base/files.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace myxtts {

struct TarMember {
  std::string name;  // as it stands in the tar; any bytes
  uint64_t first_byte = 0;
  uint64_t bytes = 0;
};

// Every regular file in order; folders, links and devices are skipped. The file may lack its closing blocks.
void list_tar(const std::filesystem::path& path, const std::function<void(const TarMember&)>& member);

// The first of them; nothing after it is looked at.
std::optional<TarMember> first_tar_member(const std::filesystem::path& path);

// What a member adds to a tar that TarWriter writes, headers and padding included; and what `finish` adds.
uint64_t tar_member_bytes(const std::string& name, uint64_t bytes);
constexpr uint64_t tar_closing_bytes = 1024;

// The same members give the same file, byte for byte: no times, owners or machine names are kept. Written under a
// temporary name, which is removed when the writer is destroyed before `finish`. One thread.
class TarWriter {
 public:
  explicit TarWriter(std::filesystem::path path) : path_(std::move(path)), file_(path_) {}

  uint64_t position() const { return file_.position(); }
  uint64_t add(const std::string& name, std::span<const std::byte> bytes);  // returns where its bytes begin
  void overwrite(uint64_t at, std::span<const std::byte> bytes);            // bytes that were written before
  void finish();                                                            // synced and renamed

 private:
  void append(const std::string& name, char type, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  FileWriter file_;
};

}  // namespace myxtts
