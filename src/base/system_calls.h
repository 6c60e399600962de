// The system's calls on files, as this program uses them: interrupted ones are made again, short ones continued.
// `errno` says what went wrong. Files are read and written through files.h, append_file.h, lines.h and mapped_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

std::string system_reason();

// With O_CLOEXEC. Does not wait for the other end of a pipe. Returns the descriptor, or -1.
int open_file(const std::filesystem::path& path, int flags);

// All of the bytes, at the descriptor's position or at `offset`. False with `errno`.
bool write_all(int descriptor, std::span<const std::byte> bytes);
bool write_at(int descriptor, std::span<const std::byte> bytes, uint64_t offset);

bool sync_file(int descriptor);

// Locks the file for this descriptor, without waiting. The lock ends with the descriptor, and so with the process. On a
// file system without locks `errno` is not EWOULDBLOCK.
bool lock_file(int descriptor);
// Whether it has no name any more.
bool is_unlinked(int descriptor);

// The names in a folder, without . and .., in no order. False with `errno`.
bool list_names(const std::filesystem::path& folder, std::vector<std::string>& names);

// Puts the file in the place of another, or of none.
bool replace_file(const std::filesystem::path& from, const std::filesystem::path& to);
bool remove_file(const std::filesystem::path& path);
// A second name for the same bytes.
bool link_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Closes on scope exit.
struct Descriptor {
  int number;
  ~Descriptor();
};

}  // namespace myxtts
