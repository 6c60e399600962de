#include "corpus/quarantine.h"

#include "corpus/rejection.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(BadClip, has_the_code_the_byte_and_the_sentence_of_its_error) {
  try {
    fail_as(ErrorCode::unreadable, "audio", "a] at byte 9 {} (at byte {})", "was cut short", at_byte(512),
            way_out("record it again"));
  } catch (const Error& error) {
    const BadClip bad = make_bad_clip("a", "wavs/a.wav", error);
    EXPECT_EQ(bad.id, "a");
    EXPECT_EQ(bad.path, "wavs/a.wav");
    EXPECT_EQ(bad.code, ErrorCode::unreadable);
    EXPECT_EQ(bad.byte, 512);
    EXPECT_EQ(bad.reason, "a] at byte 9 was cut short (at byte 512); record it again");
  }
}

TEST(BadClip, has_byte_minus_1_where_the_error_has_none) {
  try {
    fail("audio", "wavs/a.tar (part at byte 9) cannot be used");
  } catch (const Error& error) {
    EXPECT_EQ(make_bad_clip("a", "wavs/a.tar", error).byte, -1);
  }
}

TEST(Rejection, every_code_has_a_name_that_leads_back_to_it) {
  for (int i = 0; i <= static_cast<int>(Rejection::duplicate_id); ++i) {
    const auto code = static_cast<Rejection>(i);
    EXPECT_EQ(rejection_named(name_of(code)), code) << name_of(code);
  }
  EXPECT_STREQ(name_of(Rejection::missing), "missing");
  EXPECT_STREQ(name_of(Rejection::empty_text), "empty_text");
  EXPECT_EQ(rejection_named("nothing such"), std::nullopt);
}

}  // namespace
}  // namespace myxtts
