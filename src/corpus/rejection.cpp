#include "corpus/rejection.h"

#include <array>

namespace myxtts {
namespace {

constexpr std::array names = {"missing",           "unreadable",     "no_samples",   "silent",   "too_long",
                              "too_short",         "wrong_duration", "bad_row",      "bad_text", "empty_text",
                              "unknown_character", "no_phonemes",    "duplicate_id", "outside"};
static_assert(names.size() == static_cast<size_t>(Rejection::outside) + 1);

}  // namespace

const char* name_of(Rejection code) { return names.at(static_cast<size_t>(code)); }

std::optional<Rejection> rejection_named(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Rejection>(i);
  }
  return std::nullopt;
}

}  // namespace myxtts
