#include "base/process.h"

#include "base/clock.h"
#include "base/error.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

constexpr ProgramLimits enough{60, 1 << 20};

TEST(Process, gets_its_input_and_gives_output_and_status) {
  const std::string text(300'000, 'x');
  EXPECT_EQ(run_program({"/bin/sh", "-c", "cat /proc/self/fd/0"}, enough, text).output, text);
  EXPECT_EQ(run_program({"/bin/sh", "-c", "exit 3"}, enough).status, 3);
  EXPECT_THROW(run_program({"/no/such/program"}, enough), Error);
}

TEST(Process, that_waits_gets_its_input_later) {
  const std::string text(WaitingProgram::most_input, 'x');
  WaitingProgram first({"/bin/sh", "-c", "cat /proc/self/fd/0; exit 4"}), second({"/bin/sh", "-c", "cat"});
  const ProgramResult done = first.finish(text, enough);
  EXPECT_EQ(done.output, text);
  EXPECT_EQ(done.status, 4);
  EXPECT_EQ(second.finish("", enough).output, "") << "it hears of the end although others wait";
  WaitingProgram({"/bin/sh", "-c", "exec sleep 1000"});  // ended with its object
  EXPECT_THROW(WaitingProgram({"/no/such/program"}), Error);
}

TEST(Process, that_ended_while_it_waited_gives_what_it_printed) {
  WaitingProgram ended({"/bin/sh", "-c", "echo early; exit 5"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the same whether it has ended by then or not
  const ProgramResult done = ended.finish("input", enough);
  EXPECT_EQ(done.output, "early\n");
  EXPECT_EQ(done.status, 5);
  WaitingProgram hanging({"/bin/sh", "-c", "exec sleep 1000"});
  EXPECT_THROW(hanging.finish("input", {0.2, 1000}), Error);
  WaitingProgram unread({"/bin/sh", "-c", "exec sleep 1000"});
  EXPECT_THROW(unread.finish(std::string(WaitingProgram::most_input + 1, 'x'), {0.2, 1000}), Error);
}

TEST(Process, that_takes_too_long_or_prints_too_much_is_killed) {
  const auto reason = [](const std::string& command, const ProgramLimits& limits) -> std::string {
    try {
      run_program({"/bin/sh", "-c", command}, limits);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::failed);
      return error.what();
    }
    return "";
  };
  const Stopwatch clock;
  EXPECT_NE(reason("exec sleep 1000", {0.2, 1000}).find("was stopped after 0.2 s"), std::string::npos);
  EXPECT_NE(reason("exec yes", {60, 1000}).find("printed more than 1000 bytes"), std::string::npos);
  EXPECT_LT(clock.seconds(), 50);
}

}  // namespace
}  // namespace myxtts
