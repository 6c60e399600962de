#include "corpus/quarantine.h"

#include "base/append_file.h"
#include "base/json.h"
#include "base/lines.h"

#include <optional>

namespace myxtts {

BadClip make_bad_clip(const std::string& id, const std::filesystem::path& path, const Error& error) {
  BadClip bad;
  bad.id = id, bad.path = path;
  bad.code = error.code(), bad.reason = error.sentence();
  if (const std::optional<uint64_t> byte = error.byte_offset()) bad.byte = static_cast<int64_t>(*byte);
  return bad;
}

Quarantine::Quarantine(std::filesystem::path file) : file_(std::move(file)) {
  if (!std::filesystem::exists(file_)) return;
  read_lines(file_, [this](const TextLine& line) {
    const nlohmann::json known = parse_json(line.text);
    known_.emplace(json_text(known, "id"), json_text(known, "reason"));
  });
}

void Quarantine::add(std::span<const BadClip> clips) {
  const std::lock_guard lock(mutex_);
  for (const BadClip& bad : clips) {
    if (!known_.emplace(bad.id, bad.reason).second) continue;
    const nlohmann::ordered_json line = {{"id", bad.id},         {"path", bad.path.string()},
                                         {"byte", bad.byte},     {"code", name_of(bad.code)},
                                         {"reason", bad.reason}, {"replaced_by", bad.replaced_by}};
    AppendFile::lines(file_).append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
  }
}

}  // namespace myxtts
