// Clips that were fine when the corpus was prepared and cannot be read now. They never end a run and never change a
// shape: another takes their place, and they are written down.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <set>
#include <span>
#include <string>

namespace myxtts {

struct BadClip {
  std::string id;
  std::filesystem::path path;
  std::string reason;
  int64_t byte = -1;  // where it broke, if the reason tells
  std::string replaced_by;
};

BadClip make_bad_clip(const std::string& id, const std::filesystem::path& path, const std::string& error);

// quarantine.jsonl: a line for each bad clip, the first time it is met. Any thread.
class Quarantine {
 public:
  explicit Quarantine(std::filesystem::path file) : file_(std::move(file)) {}

  void add(std::span<const BadClip> clips);

 private:
  std::filesystem::path file_;
  std::mutex mutex_;
  std::set<std::string> known_;
};

}  // namespace myxtts
