#include "serve/loopback.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Loopback, is_this_machine_and_no_name_that_looks_like_it) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "0.0.0.0", "127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "evil.example", "::", "10.0.0.1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(Loopback, host_of_a_header_has_neither_port_nor_brackets) {
  EXPECT_EQ(host_of("localhost:8020"), "localhost");
  EXPECT_EQ(host_of("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(host_of("[::1]:8020"), "::1");
  EXPECT_EQ(host_of("[::1]"), "::1");
  EXPECT_EQ(host_of("evil.example:80"), "evil.example");
  EXPECT_EQ(host_of(""), "");
}

}  // namespace
}  // namespace myxtts
