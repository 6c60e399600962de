// Clips that were fine when the corpus was prepared and cannot be read now. They never change a shape: another takes
// their place, in validation none, and they are written down. A run ends only if no substitute can be read either.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace myxtts {

struct BadClip {
  std::string id;
  std::filesystem::path path;
  ErrorCode code = ErrorCode::failed;
  std::string reason;  // the sentence
  int64_t byte = -1;   // where it broke; -1: not known
  std::string replaced_by;
};

BadClip make_bad_clip(const std::string& id, const std::filesystem::path& path, const Error& error);

// quarantine.jsonl: a line for each bad clip and reason, the first time it is met. What the file has already is not
// written again. Any thread.
class Quarantine {
 public:
  explicit Quarantine(std::filesystem::path file);

  void add(std::span<const BadClip> clips);

 private:
  std::filesystem::path file_;
  std::mutex mutex_;
  std::set<std::pair<std::string, std::string>> known_;  // id and reason
};

}  // namespace myxtts
