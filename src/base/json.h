// JSON from outside. Every file is parsed here, so that no file can exhaust the stack: copying and comparing deep
// values recurses. Any thread.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace myxtts {

constexpr size_t max_json_depth = 64;

// A discarded value, of no type, if the text is not UTF-8 JSON, is nested deeper than `max_depth` or has a name twice
// in one object, which parsers resolve differently; `problem` gets the sentence.
nlohmann::json parse_json(std::string_view text, std::string* problem = nullptr, size_t max_depth = max_json_depth);

// The string of that name; empty if there is none.
std::string json_text(const nlohmann::json& object, const char* name);

}  // namespace myxtts
