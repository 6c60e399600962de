#include "train/ranks.h"

#include "base/error.h"
#include "train/rank_check.h"

#include <functional>

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace myxtts {
namespace {

uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

constexpr double timeout_s = 120;

// Each rank is a thread here. What each threw.
std::vector<std::string> run(int count, const std::function<void(const RankPlace&)>& body) {
  const uint16_t port = free_port();
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      RankPlace place;
      place.rank = rank, place.count = count, place.address = "127.0.0.1", place.port = port;
      try {
        body(place);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(Ranks, sum_broadcast_and_gather) {
  const auto errors = run(3, [](const RankPlace& place) {
    Ranks ranks(place, "1", timeout_s);
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      at::Tensor values = at::arange(5, type) + place.rank;
      ranks.sum(values);
      EXPECT_TRUE(values.equal((at::arange(5, at::kFloat) * 3 + 3).to(type)));
    }
    at::Tensor first = at::full({4}, place.rank, at::kFloat);
    ranks.broadcast(first);
    EXPECT_TRUE(first.equal(at::zeros({4})));
    const auto texts = ranks.gather(std::string(static_cast<size_t>(place.rank), 'x'));
    EXPECT_EQ(texts, (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_EQ(ranks.broadcast(std::string(static_cast<size_t>(2 - place.rank), 'y')), "yy");
    EXPECT_EQ(ranks.broadcast(place.rank == 0 ? "" : "y"), "");
    EXPECT_EQ(ranks.largest({place.rank, -place.rank, 7}), (std::vector<int64_t>{2, 0, 7}));
    ranks.wait_for_all();
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Ranks, count_those_of_their_machine_where_nobody_names_them) {
  const auto errors = run(3, [](RankPlace place) {
    if (place.rank == 2) place.local = 0, place.on_machine = 1;
    const Ranks ranks(place, "1", timeout_s);
    EXPECT_EQ(ranks.place().local, place.rank == 2 ? 0 : place.rank);
    EXPECT_EQ(ranks.place().on_machine, place.rank == 2 ? 1 : 3);
    EXPECT_EQ(ranks.place().on_cores, 3);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Ranks, of_another_version_are_refused) {
  const auto errors = run(2, [](const RankPlace& place) { Ranks(place, place.rank == 0 ? "1" : "2", timeout_s); });
  for (const std::string& error : errors) {
    EXPECT_EQ(error.find("[ranks] rank 1 is 2, rank 0 1; begin all ranks"), 0U) << error;
  }
}

TEST(Ranks, with_another_validation_corpus_voice_or_device_are_refused) {
  const auto errors = run(2, [](const RankPlace& place) {
    Ranks ranks(place, "1", timeout_s);
    const bool other = place.rank == 1;
    VoiceDescription voice;
    check_same(ranks, facts_of(voice));
    voice.speakers = {"one", other ? "three" : "two"};
    try {
      check_same(ranks, facts_of(voice));
      ADD_FAILURE() << "other speakers";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("the list of speakers of rank 1 is 2, hash"), std::string::npos);
    }
    RankFacts device = facts_of_device(-1);
    check_same(ranks, device);
    if (other) device.back().second = "a CPU with NOTHING";
    EXPECT_THROW(check_same(ranks, device), Error);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(Ranks, read_what_rank_0_found) {
  const auto errors = run(2, [](const RankPlace& place) {
    Ranks ranks(place, "1", timeout_s);
    EXPECT_FALSE(broadcast(ranks, std::optional<FoundCheckpoint>()));
    const FoundCheckpoint wanted = {"run/step-1.safetensors", {{"key", "value \"with\" marks"}}};
    EXPECT_EQ(broadcast(ranks, place.rank == 0 ? std::optional(wanted) : std::nullopt), wanted);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(Ranks, with_other_facts_or_weights_are_refused_with_the_first_difference) {
  const auto errors = run(2, [](const RankPlace& place) {
    Ranks ranks(place, "1", timeout_s);
    check_same(ranks, RankFacts{{"a", "1"}, {"b", "2"}});
    std::vector<OptimizerState> states = {make_optimizer_state(at::full({3}, place.rank, at::kFloat))};
    EXPECT_THROW(check_same(ranks, states), Error);
    broadcast(ranks, states);
    check_same(ranks, states);
    check_same(ranks, RankFacts{{"a", "1"}, {"b", place.rank == 0 ? "2" : "3"}, {"c", "4"}});
  });
  for (const std::string& error : errors) EXPECT_EQ(error.find("[ranks] b of rank 1 is 3, of rank 0 2"), 0U) << error;
}

TEST(Ranks, hear_why_another_one_stopped) {
  for (const int leaves : {0, 1, 2}) {
    const auto errors = run(3, [&](const RankPlace& place) {
      Ranks ranks(place, "1", timeout_s);
      ranks.wait_for_all();
      if (place.rank == leaves) return ranks.leave("its disk is full");
      at::Tensor values = at::ones({100});
      ranks.sum(values);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& error = errors[static_cast<size_t>(rank)];
      const std::string sentence = fmt::format("rank {} stopped: its disk is full", leaves);
      EXPECT_EQ(error.find(sentence) != std::string::npos, rank != leaves) << error;
    }
  }
}

// Rank 0, which serves the store, stays until a rank that is busy has heard too.
TEST(Ranks, hear_why_another_one_stopped_however_late) {
  const auto errors = run(3, [&](const RankPlace& place) {
    Ranks ranks(place, "1", timeout_s);
    ranks.wait_for_all();
    if (place.rank == 1) return ranks.leave("its disk is full");
    if (place.rank == 2) std::this_thread::sleep_for(std::chrono::seconds(9));
    at::Tensor values = at::ones({100});
    ranks.sum(values);
  });
  for (const size_t rank : {0, 2}) {
    EXPECT_NE(errors[rank].find("rank 1 stopped: its disk is full"), std::string::npos) << errors[rank];
  }
}

TEST(Ranks, name_one_that_hangs_while_its_heart_beats) {
  constexpr double patience_s = 2;
  const auto errors = run(3, [&](const RankPlace& place) {
    Ranks ranks(place, "1", patience_s);
    ranks.wait_for_all();
    if (place.rank == 2) std::this_thread::sleep_for(std::chrono::seconds(10));
    at::Tensor values = at::ones({100});
    ranks.sum(values);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 2 of 3 hangs: others waited for it in vain"), std::string::npos) << error;
  }
}

TEST(Ranks, wait_for_one_that_is_busy_longer_than_for_a_message) {
  const auto errors = run(2, [&](const RankPlace& place) {
    Ranks ranks(place, "1", 2);
    if (place.rank == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
    ranks.wait_for_all();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace myxtts
