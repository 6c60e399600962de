#include "text/utf8.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Utf8, survives_the_way_there_and_back) {
  for (const std::string text : {"plain", "می‌خواند «پرسش»", "日本 😀", ""})
    EXPECT_EQ(encode_utf8(decode_utf8(text)), text);
  EXPECT_EQ(decode_utf8("می‌رود").size(), 6U);  // the half-space counts
}

TEST(Utf8, what_is_not_utf8_is_refused) {
  for (const std::string text : {"\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "a\xE2\x82"}) {
    EXPECT_THROW(decode_utf8(text), Error);
  }
}

}  // namespace
}  // namespace myxtts
