#include "train/rank_place.h"

#include "base/error.h"

#include <map>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankPlace> find_in(const Variables& variables) {
  return find_rank([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(RankPlace, is_none_where_nobody_names_ranks_or_there_is_one) {
  EXPECT_FALSE(find_in({}));
  EXPECT_FALSE(find_in({{"RANK", "3"}}));
  EXPECT_FALSE(find_in({{"WORLD_SIZE", "1"}, {"RANK", "0"}}));
  // A script of sbatch, outside of srun.
  EXPECT_FALSE(find_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NODELIST", "a[1-2]"}}));
}

TEST(RankPlace, is_read_from_what_torchrun_sets) {
  const auto place = find_in({{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node1"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RUN_ID", "a run"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 5);
  EXPECT_EQ(place->count, 8);
  EXPECT_EQ(place->local, 1);
  EXPECT_EQ(place->on_machine, 4);
  EXPECT_EQ(place->address, "node1");
  EXPECT_EQ(place->port, 29500);
  EXPECT_TRUE(place->store_is_served);
  EXPECT_EQ(place->run, "a run");
}

TEST(RankPlace, is_open_among_its_machine_where_nobody_names_it) {
  Variables by_hand = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const auto place = find_in(by_hand);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->local, -1);
  EXPECT_EQ(place->on_machine, 0);
  EXPECT_FALSE(place->store_is_served);
  Variables local = by_hand;
  local["MASTER_ADDR"] = "localhost";
  EXPECT_EQ(find_in(local)->local, 1);
  EXPECT_EQ(find_in(local)->on_machine, 2);
  by_hand["LOCAL_RANK"] = "3";
  EXPECT_EQ(find_in(by_hand)->local, 3);
  EXPECT_EQ(find_in(by_hand)->on_machine, 0);
}

TEST(RankPlace, counts_neighbours_by_machine_and_by_cores) {
  // Bound by srun to cores of their own; by a container to the same ones; and one that may run anywhere.
  const std::vector<RankHome> homes = {{"a", "11"}, {"a", "0011"}, {"b", "11"}, {"b", "11"}, {"a", "1111"}, {"c", ""}};
  const std::vector<Neighbours> wanted = {{0, 3, 2}, {1, 3, 2}, {0, 2, 2}, {1, 2, 2}, {2, 3, 3}, {0, 1, 1}};
  for (size_t rank = 0; rank < homes.size(); ++rank) {
    const Neighbours found = neighbours(homes, rank);
    EXPECT_EQ(found.before, wanted[rank].before) << rank;
    EXPECT_EQ(found.on_machine, wanted[rank].on_machine) << rank;
    EXPECT_EQ(found.on_cores, wanted[rank].on_cores) << rank;
  }
  EXPECT_FALSE(own_home().machine.empty());
  EXPECT_NE(own_home().cores.find('1'), std::string::npos);
}

TEST(RankPlace, is_read_from_what_srun_sets) {
  const Variables slurm = {{"SLURM_PROCID", "6"},      {"SLURM_LOCALID", "2"},
                           {"SLURM_NTASKS", "8"},      {"SLURM_STEP_ID", "0"},
                           {"SLURM_JOB_ID", "123456"}, {"SLURM_NODELIST", "gpu[07-09,12],cpu1"}};
  const auto place = find_in(slurm);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 6);
  EXPECT_EQ(place->count, 8);
  EXPECT_EQ(place->local, 2);
  EXPECT_EQ(place->on_machine, 0);
  EXPECT_EQ(place->address, "gpu07");
  EXPECT_EQ(place->port, 23456);
  EXPECT_EQ(place->run, "123456.0");
  Variables alone = slurm;
  alone["SLURM_NNODES"] = "1";
  EXPECT_EQ(find_in(alone)->on_machine, 8);
  Variables beside = slurm;
  beside["SLURM_STEP_ID"] = "2";
  EXPECT_EQ(find_in(beside)->port, 25456);
  EXPECT_EQ(find_in(beside)->run, "123456.2");
  Variables given = slurm;
  given["MASTER_ADDR"] = "10.0.0.1", given["MASTER_PORT"] = "5000";
  EXPECT_EQ(find_in(given)->address, "10.0.0.1");
  EXPECT_EQ(find_in(given)->port, 5000);
  Variables nameless = slurm;
  nameless.erase("SLURM_NODELIST");
  EXPECT_THROW(find_in(nameless), Error);
  nameless["SLURM_LAUNCH_NODE_IPADDR"] = "10.0.0.2";
  EXPECT_EQ(find_in(nameless)->address, "10.0.0.2");
}

TEST(RankPlace, names_what_is_missing_or_no_number) {
  const Variables whole = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  ASSERT_TRUE(find_in(whole));
  for (const auto& [name, value] : Variables{
           {"RANK", "2"}, {"WORLD_SIZE", "two"}, {"MASTER_ADDR", ""}, {"MASTER_PORT", "0"}, {"LOCAL_RANK", "-1"}}) {
    Variables broken = whole;
    broken[name] = value;
    try {
      find_in(broken);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

TEST(FirstMachine, is_that_of_any_list) {
  EXPECT_EQ(first_machine("one"), "one");
  EXPECT_EQ(first_machine("one,two"), "one");
  EXPECT_EQ(first_machine("gpu[07-09,12],cpu1"), "gpu07");
  EXPECT_EQ(first_machine("gpu[3,5-8]"), "gpu3");
  EXPECT_EQ(first_machine("rack[1-2]-node"), "rack1-node");
  EXPECT_EQ(first_machine(""), "");
  EXPECT_EQ(first_machine("broken["), "");
}

}  // namespace
}  // namespace myxtts
