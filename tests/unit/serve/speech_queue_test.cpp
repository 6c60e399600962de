#include "serve/speech_queue.h"

#include "base/error.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

constexpr std::chrono::milliseconds hang_guard(1000000);

// Says as many pieces as its text has letters, each ten samples of the piece's number. "!" fails.
struct Voice {
  std::atomic<int> begun = 0, pieces = 0;
  std::function<void()> before_piece = [] {};
  std::function<bool(const std::string&)> ready = [](const std::string&) { return true; };

  ServedVoice served() {
    VoiceFacts facts;
    facts.sample_rate = 10;
    return {facts, [this](const SpeechRequest& request, const std::optional<Clip>&) -> SpokenText {
              ++begun;
              const auto next = [this, text = request.input, at = size_t{0}]() mutable -> std::vector<float> {
                before_piece();
                if (at == text.size()) return {};
                if (text[at] == '!') fail("test", "cannot be said");
                ++at, ++pieces;
                return std::vector<float>(10, static_cast<float>(at));
              };
              return {next, [this, text = request.input] { return ready(text); }};
            }};
  }
};

SpeechRequest request(const std::string& text) {
  SpeechRequest asked;
  asked.input = text;
  return asked;
}

std::vector<float> all_of(SpeechJob& job) {
  std::vector<float> all;
  for (;;) {
    const std::vector<float> samples = job.take(hang_guard).value();
    if (samples.empty()) return all;
    all.insert(all.end(), samples.begin(), samples.end());
  }
}

TEST(SpeechQueue, speaks_everything_in_order) {
  Voice voice;
  SpeechQueue queue(voice.served(), 4);
  const auto one = queue.add(request("abc"), {}), other = queue.add(request("d"), {});
  const std::vector<float> samples = all_of(*one);
  ASSERT_EQ(samples.size(), 30U);
  EXPECT_TRUE(samples[0] == 1 && samples[15] == 2 && samples[29] == 3);
  EXPECT_EQ(all_of(*other).size(), 10U);
}

TEST(SpeechQueue, refuses_more_than_it_has_room_for) {
  Voice voice;
  std::promise<void> go;
  const std::shared_future<void> wait(go.get_future());
  voice.before_piece = [wait] { wait.wait(); };
  SpeechQueue queue(voice.served(), 2);
  auto one = queue.add(request("a"), {}), two = queue.add(request("b"), {});
  EXPECT_EQ(queue.length(), 2U);
  EXPECT_EQ(queue.add(request("c"), {}), nullptr);
  EXPECT_FALSE(one->take(std::chrono::milliseconds(1))) << "nothing is made yet";
  go.set_value();
  EXPECT_EQ(all_of(*one).size(), 10U);
  EXPECT_EQ(all_of(*two).size(), 10U);
  while (queue.length() > 0) std::this_thread::yield();
  EXPECT_NE(queue.add(request("c"), {}), nullptr);
}

TEST(SpeechQueue, passes_an_error_on_after_the_samples_before_it) {
  Voice voice;
  SpeechQueue queue(voice.served(), 2);
  const auto job = queue.add(request("a!"), {});
  std::vector<float> heard;
  EXPECT_THROW(
      for (;;) {
        const auto samples = job->take(hang_guard).value();
        heard.insert(heard.end(), samples.begin(), samples.end());
      },
      Error);
  EXPECT_EQ(heard.size(), 10U);
  EXPECT_EQ(all_of(*queue.add(request("b"), {})).size(), 10U) << "the next one is spoken";
}

TEST(SpeechQueue, does_not_speak_on_for_somebody_who_has_left) {
  Voice voice;
  SpeechQueue queue(voice.served(), 2);
  auto job = queue.add(request(std::string(1000000, 'a')), {});
  job->take(hang_guard);
  job.reset();
  while (queue.length() > 0) std::this_thread::yield();
  EXPECT_LT(voice.pieces, 1000000);
}

// One second of sound per piece: a step of the one who has heard least comes first.
TEST(SpeechQueue, takes_turns_so_that_nobody_waits_for_a_long_text) {
  Voice voice;
  std::promise<void> both_are_there;
  const std::shared_future<void> wait(both_are_there.get_future());
  voice.before_piece = [wait] { wait.wait(); };
  SpeechQueue queue(voice.served(), 2);
  const auto longer = queue.add(request(std::string(100000, 'a')), {}), shorter = queue.add(request("b"), {});
  both_are_there.set_value();
  EXPECT_EQ(all_of(*shorter).size(), 10U);
  EXPECT_LT(voice.pieces, 100000) << "the long text is not over";
}

TEST(SpeechQueue, does_not_wait_for_a_text_that_is_still_being_pronounced) {
  Voice voice;
  std::atomic<bool> pronounced = false;
  voice.ready = [&](const std::string& text) { return text != "slow" || pronounced; };
  SpeechQueue queue(voice.served(), 2);
  const auto slow = queue.add(request("slow"), {}), other = queue.add(request("other"), {});
  EXPECT_EQ(all_of(*other).size(), 50U);
  EXPECT_EQ(voice.begun, 2);
  EXPECT_FALSE(slow->take(std::chrono::milliseconds(1)));
  pronounced = true;
  EXPECT_EQ(all_of(*slow).size(), 40U);
}

// One second of sound per piece.
TEST(SpeechQueue, speaks_a_minute_ahead_of_who_takes_nothing_and_keeps_its_place) {
  Voice voice;
  SpeechQueue queue(voice.served(), 2);
  const auto idle = queue.add(request(std::string(100, 'a')), {});
  while (voice.pieces < 60) std::this_thread::yield();
  EXPECT_EQ(all_of(*queue.add(request(std::string(1000, 'b')), {})).size(), 10000U);
  EXPECT_EQ(voice.pieces, 60 + 1000);
  while (queue.length() > 1) std::this_thread::yield();
  EXPECT_EQ(queue.length(), 1U) << "what is not spoken to its end counts";
  EXPECT_EQ(all_of(*idle).size(), 1000U);
}

TEST(SpeechQueue, ends_what_is_being_spoken_when_it_is_closed) {
  Voice voice;
  std::shared_ptr<SpeechJob> job;
  {
    SpeechQueue queue(voice.served(), 1);
    job = queue.add(request(std::string(1000000, 'a')), {});
    job->take(hang_guard);
  }
  all_of(*job);
  EXPECT_LT(voice.pieces, 1000000);
}

}  // namespace
}  // namespace myxtts
