// The table of settings as a reference, in both languages: plain text for a terminal, or Markdown for the pages.
#pragma once

#include "settings/settings.h"

#include <string>
#include <vector>

namespace myxtts {

struct ReferenceOptions {
  PageLanguage language = PageLanguage::en;
  bool markdown = false;
  std::string command = {};  // only the settings that it takes; empty: all
  std::string group = {};    // only the settings of this group; empty: all
};

std::vector<std::string> command_names();
std::vector<std::string> setting_groups();

std::string settings_reference(const ReferenceOptions& options);

}  // namespace myxtts
