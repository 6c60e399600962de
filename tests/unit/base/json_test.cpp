#include "base/json.h"

#include <chrono>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

std::string problem_of(const std::string& text) {
  std::string problem;
  EXPECT_TRUE(parse_json(text, &problem).is_discarded()) << text.substr(0, 40);
  return problem;
}

TEST(Json, what_is_written_is_read) {
  for (const std::string text :
       {R"({"a":[1,-2,3.5,"x",true,null,{"b":{}}],"c":[[],[{}]]})", "[]", "7", R"("one")", "null"}) {
    EXPECT_EQ(parse_json(text).dump(), text);
  }
}

TEST(Json, a_text_that_is_not_json_is_discarded_with_its_place) {
  for (const std::string text : {"", "{", "[1,]", "{\"a\":\"\xFF\"}", "1e999", "{} {}"}) {
    EXPECT_NE(problem_of(text).find("not JSON (at byte"), std::string::npos) << text;
  }
}

TEST(Json, a_name_may_stand_once_in_an_object) {
  EXPECT_EQ(problem_of(R"({"a":1,"b":{"a":2},"a":3})"), "it has 'a' twice");
}

TEST(Json, nesting_is_limited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(max_json_depth)).is_array());
  for (const size_t depth : {max_json_depth + 1, size_t{200'000}}) {
    EXPECT_EQ(problem_of(nested(depth)), "it is nested too deeply");
  }
}

// With a callback nlohmann::json takes minutes for these.
TEST(Json, many_small_objects_take_linear_time) {
  std::string text = "[{}";
  for (int i = 0; i < 300'000; ++i) text += ",{}";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text + "]").size(), 300'001U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace myxtts
