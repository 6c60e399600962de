// The known name nearest to a misspelt one, for "did you mean".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Smallest number of inserted, removed, changed or swapped characters.
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`; the first of equals. Empty when `known` is.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace myxtts
