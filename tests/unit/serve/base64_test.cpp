#include "serve/base64.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Base64, decodes_the_examples_of_its_standard) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("+/8A"), std::string("\xFB\xFF\x00", 3));
}

TEST(Base64, refuses_what_is_none) {
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zg==\n", "Zm9v Zm9", "Z=9v", "====", "Zm9v====", "Zm-_", "Zé9"}) {
    EXPECT_FALSE(decode_base64(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace myxtts
