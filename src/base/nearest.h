// Suggests the nearest known name for a misspelt one. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Damerau-Levenshtein distance (insert, delete, substitute, transpose).
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, the first if several tie; empty if `known` is empty.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace myxtts
