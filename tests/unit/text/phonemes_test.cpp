#include "text/phonemes.h"

#include "base/error.h"
#include "base/files.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

namespace fs = std::filesystem;

const std::function<void(uint64_t, uint64_t)> no_progress;

class Phonemes : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_phonemes_test";
  fs::path cache = folder / "phonemes.jsonl";
  void SetUp() override {
    if (!phonemes_available()) GTEST_SKIP() << "espeak-ng is not installed: phonemes are not tested";
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
};

// Whether so many processes have begun, each of which adds a byte to a file; that may take a while.
bool started(const fs::path& starts, uintmax_t count) {
  for (int i = 0; i < 10'000 && (!fs::exists(starts) || fs::file_size(starts) < count); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fs::exists(starts) && fs::file_size(starts) == count;
}

TEST_F(Phonemes, a_text_has_the_same_phonemes_alone_and_among_others) {
  const std::vector<std::string> texts = {
      "Hello there, my friend. How are you?", "", "one; two: three", "line\n\nbreak", "...", "[[brackets]]", "the end"};
  const auto together = to_phonemes(texts, "en-us", {}, 2, no_progress);
  ASSERT_EQ(together.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(together[i], to_phonemes({texts[i]}, "en-us", {}, 1, no_progress)[0]) << texts[i];
  }
  EXPECT_EQ(together[0], "həlˈoʊ ðˈɛɹ, maɪ fɹˈɛnd. hˈaʊ ɑːɹ juː?");
  EXPECT_EQ(together[1], "");
  EXPECT_EQ(together[2], "wˈʌn; tˈuː: θɹˈiː");
  EXPECT_EQ(together[4], "");
}

TEST_F(Phonemes, that_are_expected_are_the_same) {
  const std::vector<std::string> texts = {"Hello there, my friend. How are you?", "one", "", "the end; of it"};
  const auto wanted = to_phonemes(texts, "en-gb", {}, 1, no_progress);
  expect_phonemes("en-gb");
  expect_phonemes("en-gb");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(to_phonemes(texts, "en-gb", {}, 2, no_progress), wanted);
    EXPECT_EQ(to_phonemes({texts[1]}, "en-gb", {}, 1, no_progress).front(), wanted[1]);
  }
  EXPECT_THROW(expect_phonemes("qqq"), Error);
}

TEST_F(Phonemes, that_are_expected_are_asked_of_a_process_that_waits) {
  const fs::path waits = folder / "waits", fake = waits / "espeak-ng", starts = waits / "starts";
  fs::create_directories(waits);
  std::ofstream(fake) << fmt::format("#!/bin/sh\necho >>{}\nexec cat /proc/self/fd/0\n", starts.string());
  fs::permissions(fake, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (waits.string() + ":" + path).c_str(), 1);
  expect_phonemes("en-us");
  EXPECT_TRUE(started(starts, 2)) << "one learns the marker, one waits";
  EXPECT_EQ(to_phonemes({"word"}, "en-us", {}, 1, no_progress).front(), "word");
  EXPECT_TRUE(started(starts, 3)) << "one was waiting, the next one waits";
  EXPECT_EQ(to_phonemes({"two", "words"}, "en-us", {}, 1, no_progress).back(), "words");
  EXPECT_TRUE(started(starts, 4)) << "the marker is known";
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(Phonemes, are_found_although_the_process_that_waits_was_ended) {
  const fs::path dies = folder / "dies", fake = dies / "espeak-ng", starts = dies / "starts";
  fs::create_directories(dies);
  std::ofstream(fake) << fmt::format(
      "#!/bin/sh\necho >>{0}\n[ \"$(wc -c <{0})\" = 2 ] && exit 9\nexec cat /proc/self/fd/0\n", starts.string());
  fs::permissions(fake, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (dies.string() + ":" + path).c_str(), 1);
  expect_phonemes("en-us");
  EXPECT_TRUE(started(starts, 2)) << "the one that waits, and ends";
  EXPECT_EQ(to_phonemes({"word"}, "en-us", {}, 1, no_progress).front(), "word");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(Phonemes, that_are_expected_on_many_threads_are_the_same) {
  expect_phonemes("fa");
  const std::string wanted = to_phonemes({"سلام دنیا، خوبی؟"}, "fa", {}, 1, no_progress).front();
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        same += to_phonemes({"سلام دنیا، خوبی؟"}, "fa", {}, 1, no_progress).front() == wanted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 20);
}

TEST_F(Phonemes, of_an_espeak_that_prints_for_ever_end_with_an_error) {
  const fs::path fake = folder / "espeak-ng";
  std::ofstream(fake) << "#!/bin/sh\nexec yes\n";
  fs::permissions(fake, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  EXPECT_THROW(to_phonemes({"word"}, "en-us", {}, 1, no_progress), Error);
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(Phonemes, a_text_with_the_marker_itself_is_still_told_apart) {
  const std::vector<std::string> texts = {"before", "zqxmarker", "after"};
  const auto ipa = to_phonemes(texts, "en-us", {}, 1, no_progress);
  EXPECT_EQ(ipa[0], to_phonemes({"before"}, "en-us", {}, 1, no_progress)[0]);
  EXPECT_EQ(ipa[2], to_phonemes({"after"}, "en-us", {}, 1, no_progress)[0]);
  EXPECT_FALSE(ipa[1].empty());
}

TEST_F(Phonemes, persian_works_and_language_flags_are_left_out) {
  const auto ipa = to_phonemes({"سلام دنیا. می‌روم", "سلام hello"}, "fa", {}, 1, no_progress);
  EXPECT_EQ(ipa[0], "salˈɑm dˈonjɑ. mirˈavam");
  EXPECT_EQ(ipa[1].find('('), std::string::npos);
}

TEST_F(Phonemes, many_batches_on_many_threads_keep_the_order_and_report_progress) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(fmt::format("number {}", i));
  uint64_t last_done = 0, last_total = 0;
  const auto ipa = to_phonemes(texts, "en-us", {}, 2, [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last_done);
    last_done = done, last_total = total;
  });
  EXPECT_EQ(last_done, 1000U);
  EXPECT_EQ(last_total, 1000U);
  for (const size_t i : {0U, 399U, 400U, 999U}) {
    EXPECT_EQ(ipa[i], to_phonemes({texts[i]}, "en-us", {}, 1, no_progress)[0]);
  }
}

TEST_F(Phonemes, what_is_remembered_is_not_asked_for_again_and_a_damaged_line_is_skipped) {
  const std::string said = to_phonemes({"hello"}, "en-us", cache, 1, no_progress)[0];
  const std::string saved = read_text_file(cache, 10000);
  EXPECT_NE(saved.find("hello"), std::string::npos);
  write_file_atomically(cache, "{\"language\":\"en-us\",\"te\n{}\n7\n" + saved +
                                   R"({"language":"en-us","text":"made up","ipa":"as remembered"})" + "\n");
  uint64_t asked = 0;
  const auto ipa = to_phonemes({"made up", "hello", "new", "new"}, "en-us", cache, 1,
                               [&](uint64_t, uint64_t total) { asked = total; });
  EXPECT_EQ(ipa[0], "as remembered");
  EXPECT_EQ(ipa[1], said);
  EXPECT_EQ(ipa[2], ipa[3]);
  EXPECT_EQ(asked, 1U);
}

TEST_F(Phonemes, an_unknown_language_is_refused) {
  for (const std::vector<std::string>& texts : {std::vector<std::string>{"hello"}, {"hello", "day"}}) {
    try {
      to_phonemes(texts, "qqq", cache, 1, no_progress);
      ADD_FAILURE() << texts.size();
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("does not support the language 'qqq'"), std::string::npos) << error.what();
    }
  }
}

TEST(PhonemesWithoutEspeak, the_error_says_how_to_install_it) {
  const char* before = std::getenv("PATH");
  const std::string path = before == nullptr ? "" : before;
  ::setenv("PATH", "/nowhere", 1);
  const bool available = phonemes_available();
  std::string message;
  try {
    to_phonemes({"hello"}, "en-us", {}, 1, no_progress);
  } catch (const Error& error) {
    message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
  }
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(available);
  EXPECT_NE(message.find("apt-get install espeak-ng"), std::string::npos) << message;
}

}  // namespace
}  // namespace myxtts
