// Which of a run's processes this one is, from the environment that torchrun, Slurm or a person sets. No libtorch here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

struct RankPlace {
  int rank = 0, count = 1;
  int local = -1, on_machine = 0;  // among the ranks of this machine; -1 and 0: counted once all ranks have met
  int on_cores = 1;                // ranks that share this one's cores, itself among them; counted then too
  std::string address;             // where rank 0 is met
  uint16_t port = 0;
  bool store_is_served = false;  // by torchrun; otherwise rank 0 serves it
  std::string run;               // separates this run from others at the same port
};

// None: one process. `variable` returns null for one that is not set. Throws Error with the variable that is missing or
// is not a number.
std::optional<RankPlace> find_rank(const std::function<const char*(const char*)>& variable);
std::optional<RankPlace> find_rank();  // in this process's environment

// The first machine of Slurm's "gpu[07-09,12],cpu1": "gpu07".
std::string first_machine(const std::string& list);

// Where a rank runs. `cores`: a character for each core of the machine, '1' if it may run there.
struct RankHome {
  std::string machine, cores;
};
RankHome own_home();

// Of rank r of ranks with these homes: the ranks of its machine with a lower number, all of that machine, and those of
// them that may run on some of its cores.
struct Neighbours {
  int before = 0, on_machine = 0, on_cores = 0;
};
Neighbours neighbours(const std::vector<RankHome>& homes, size_t rank);

}  // namespace myxtts
