#include "base/json.h"

#include <utility>

#include <fmt/format.h>

namespace myxtts {
namespace {

using Json = nlohmann::json;

// The interface that nlohmann::json calls while it reads. Its own parser with a callback scans all members of a parent
// after each child, which takes quadratic time.
class Builder {
 public:
  explicit Builder(size_t max_depth) : max_depth_(max_depth) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(int64_t value) { return put(value); }
  bool number_unsigned(uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return open_.pop_back(), true; }
  bool end_array() { return open_.pop_back(), true; }

  bool key(std::string& name) {
    const auto [place, is_new] = open_.back()->emplace(name, nullptr);
    member_ = &*place;
    if (!is_new) problem = fmt::format("it has '{}' twice", name);
    return is_new;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception&) {
    problem = fmt::format("it is not JSON (at byte {})", byte);
    return false;
  }

  Json root;
  std::string problem;

 private:
  Json& place() {
    if (open_.empty()) return root;
    return open_.back()->is_array() ? open_.back()->emplace_back() : *member_;
  }

  bool put(Json value) { return place() = std::move(value), true; }

  bool open(Json container) {
    if (open_.size() == max_depth_) {
      problem = "it is nested too deeply";
      return false;
    }
    Json& at = place();
    at = std::move(container);
    open_.push_back(&at);
    return true;
  }

  const size_t max_depth_;
  std::vector<Json*> open_;  // containers, the outermost first
  Json* member_ = nullptr;   // of the innermost object: the value that comes next
};

}  // namespace

Json parse_json(std::string_view text, std::string* problem, size_t max_depth) {
  Builder builder(max_depth);
  if (Json::sax_parse(text, &builder)) return std::move(builder.root);
  if (problem != nullptr) *problem = builder.problem;
  return Json(Json::value_t::discarded);
}

std::string json_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace myxtts
