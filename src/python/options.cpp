#include "python/options.h"

#include "base/error.h"
#include "base/nearest.h"
#include "settings/config_file.h"

#include <vector>

namespace myxtts {

Config config_of(const std::string& file, const Keywords& keywords, Command command) {
  std::vector<FlagValue> flags;
  for (const auto& [key, text] : keywords) {
    const Setting* const setting = find_setting(key);
    if (setting == nullptr || !setting->taken_by(command)) {
      std::vector<std::string> known;
      for (const Setting& one : all_settings()) {
        if (one.taken_by(command)) known.push_back(one.key);
      }
      reject_setting("settings", key, "is not a setting of this function",
                     way_out("did you mean {}?", nearest(key, known)));
    }
    flags.push_back({key, setting->name(), text});
  }
  return load_config(file, "", flags).values;
}

}  // namespace myxtts
