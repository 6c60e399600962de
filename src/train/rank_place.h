// Which of a run's processes this one is, from the environment that torchrun, Slurm or a person sets. No libtorch here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace myxtts {

struct RankPlace {
  int rank = 0, count = 1;
  int local = 0, on_machine = 1;  // among the ranks of this machine
  std::string address;            // where rank 0 is met
  uint16_t port = 0;
  bool store_is_served = false;  // by torchrun; otherwise rank 0 serves it
  std::string attempt = "0";     // torchrun's restarts
};

// None: one process. `variable` returns null for one that is not set. Throws Error with the variable that is missing or
// is not a number.
std::optional<RankPlace> find_rank(const std::function<const char*(const char*)>& variable);
std::optional<RankPlace> find_rank();  // in this process's environment

// The first machine of Slurm's "gpu[07-09,12],cpu1": "gpu07".
std::string first_machine(const std::string& list);

}  // namespace myxtts
