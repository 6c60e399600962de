#include "corpus/quarantine.h"

#include "base/error.h"

#include <charconv>
#include <fstream>

#include <nlohmann/json.hpp>

namespace myxtts {

BadClip make_bad_clip(const std::string& id, const std::filesystem::path& path, const std::string& error) {
  BadClip bad;
  bad.id = id, bad.path = path;
  bad.reason = error.substr(error.find("] ") == std::string::npos ? 0 : error.find("] ") + 2);
  constexpr std::string_view mark = "at byte ";
  if (const size_t at = bad.reason.rfind(mark); at != std::string::npos) {
    const char* const digits = bad.reason.data() + at + mark.size();
    std::from_chars(digits, bad.reason.data() + bad.reason.size(), bad.byte);
  }
  return bad;
}

Quarantine::Quarantine(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream lines(file_);
  for (std::string line; std::getline(lines, line);) {
    const auto known = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto text = [&](const char* key) {
      return known.is_object() && known.contains(key) && known[key].is_string() ? known[key].get<std::string>() : "";
    };
    known_.emplace(text("id"), text("reason"));
  }
}

void Quarantine::add(std::span<const BadClip> clips) {
  const std::lock_guard lock(mutex_);
  for (const BadClip& bad : clips) {
    if (!known_.emplace(bad.id, bad.reason).second) continue;
    const nlohmann::ordered_json line = {{"id", bad.id},
                                         {"path", bad.path.string()},
                                         {"byte", bad.byte},
                                         {"reason", bad.reason},
                                         {"replaced_by", bad.replaced_by}};
    std::ofstream file(file_, std::ios::app);
    file << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    if (!file) fail("quarantine", "{} cannot be written", file_.string());
  }
}

}  // namespace myxtts
