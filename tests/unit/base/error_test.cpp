#include "base/error.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error({});
}

TEST(Error, the_line_has_operation_message_and_way_out_and_each_has_an_accessor) {
  const Error error =
      error_of([] { reject_input("train", "{} has {} clips", "a; b] c", 3, way_out("give at least {}", 4)); });
  EXPECT_STREQ(error.what(), "[train] a; b] c has 3 clips; give at least 4");
  EXPECT_EQ(error.code(), ErrorCode::invalid_input);
  EXPECT_EQ(error.where(), "train");
  EXPECT_EQ(error.message(), "a; b] c has 3 clips");
  EXPECT_EQ(error.way_out(), "give at least 4");
  EXPECT_EQ(error.sentence(), "a; b] c has 3 clips; give at least 4");
  EXPECT_EQ(error.setting(), "");
  EXPECT_EQ(error.byte_offset(), std::nullopt);
}

TEST(Error, without_a_way_out_the_line_ends_with_the_message) {
  const Error error = error_of([] { fail("loader", "it was stopped"); });
  EXPECT_STREQ(error.what(), "[loader] it was stopped");
  EXPECT_EQ(error.sentence(), error.message());
  EXPECT_EQ(error.way_out(), "");
  EXPECT_EQ(error.code(), ErrorCode::failed);
}

TEST(Error, a_byte_offset_is_formatted_as_its_number_and_kept) {
  const Error error =
      error_of([] { fail_as(ErrorCode::unreadable, "audio", "{} was cut short (at byte {})", "a.wav", at_byte(0)); });
  EXPECT_STREQ(error.what(), "[audio] a.wav was cut short (at byte 0)");
  EXPECT_EQ(error.byte_offset(), 0U);
  EXPECT_EQ(error.code(), ErrorCode::unreadable);
}

TEST(Error, a_setting_is_named_in_the_message_and_kept_as_a_key) {
  const std::string text = "-4";
  const Error error = error_of([&] {
    reject_setting("config", "data.batch_size", "is '{}'", text, way_out("it must be {}", std::string("positive")));
  });
  EXPECT_STREQ(error.what(), "[config] data.batch_size is '-4'; it must be positive");
  EXPECT_EQ(error.setting(), "data.batch_size");
  EXPECT_EQ(error.message(), "data.batch_size is '-4'");
  EXPECT_EQ(error.code(), ErrorCode::invalid_setting);
}

TEST(Error, the_exit_status_is_2_for_what_the_user_gave_and_1_for_the_rest) {
  for (const ErrorCode code :
       {ErrorCode::failed, ErrorCode::unreadable, ErrorCode::changed, ErrorCode::stopped, ErrorCode::out_of_memory}) {
    EXPECT_EQ(exit_status(code), 1) << name_of(code);
  }
  for (const ErrorCode code : {ErrorCode::missing, ErrorCode::invalid_input, ErrorCode::invalid_setting}) {
    EXPECT_EQ(exit_status(code), 2) << name_of(code);
  }
  EXPECT_STREQ(name_of(ErrorCode::failed), "failed");
  EXPECT_STREQ(name_of(ErrorCode::out_of_memory), "out_of_memory");
  EXPECT_STREQ(name_of(ErrorCode::invalid_setting), "invalid_setting");
}

TEST(Error, a_copy_has_the_same_parts) {
  const Error error = error_of([] { fail("pack", "{} is damaged", "a.tar", way_out("pack it again")); });
  const Error copy = error;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_STREQ(copy.what(), error.what());
  EXPECT_EQ(copy.way_out(), "pack it again");
}

}  // namespace
}  // namespace myxtts
