#include "train/rank_place.h"

#include "base/error.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include <sched.h>
#include <unistd.h>

namespace myxtts {
namespace {

using Environment = std::function<const char*(const char*)>;

std::string text_of(const Environment& variable, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const char* const value = variable(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

int64_t number_of(const Environment& variable, const char* name, int64_t min, int64_t max) {
  const std::string text = text_of(variable, {name});
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && number >= min && number <= max) return number;
  reject_input("ranks", "{} is '{}'", name, text,
               way_out("it must be a whole number from {} to {}; without WORLD_SIZE one process trains", min, max));
}

constexpr int64_t most_ranks = 1 << 20;

RankPlace from_torchrun(const Environment& variable) {
  RankPlace place;
  place.count = static_cast<int>(number_of(variable, "WORLD_SIZE", 1, most_ranks));
  if (place.count == 1) return place;
  place.rank = static_cast<int>(number_of(variable, "RANK", 0, place.count - 1));
  place.address = text_of(variable, {"MASTER_ADDR"});
  if (place.address.empty()) {
    reject_input("ranks", "WORLD_SIZE is {}, but MASTER_ADDR is not set", place.count,
                 way_out("set it to the address of rank 0's machine"));
  }
  place.port = static_cast<uint16_t>(number_of(variable, "MASTER_PORT", 1, 65535));
  const bool one_machine = place.address == "localhost" || place.address.starts_with("127.") || place.address == "::1";
  if (one_machine) place.on_machine = place.count, place.local = place.rank;
  if (variable("LOCAL_WORLD_SIZE") != nullptr) {
    place.on_machine = static_cast<int>(number_of(variable, "LOCAL_WORLD_SIZE", 1, place.count));
    place.local = place.rank % place.on_machine;
  }
  if (variable("LOCAL_RANK") != nullptr) {
    place.local = static_cast<int>(number_of(variable, "LOCAL_RANK", 0, most_ranks));
  }
  place.store_is_served = text_of(variable, {"TORCHELASTIC_USE_AGENT_STORE"}) == "True";
  place.run = text_of(variable, {"TORCHELASTIC_RUN_ID"});
  return place;
}

// In a script of sbatch, outside of srun, one process runs although the job has several tasks.
bool under_srun(const Environment& variable) {
  return variable("SLURM_PROCID") != nullptr &&
         !text_of(variable, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_LAUNCH_NODE_IPADDR"}).empty() &&
         !text_of(variable, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}).empty();
}

RankPlace from_slurm(const Environment& variable) {
  RankPlace place;
  const char* const tasks = variable("SLURM_STEP_NUM_TASKS") != nullptr ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  place.count = static_cast<int>(number_of(variable, tasks, 1, most_ranks));
  if (place.count == 1) return place;
  place.rank = static_cast<int>(number_of(variable, "SLURM_PROCID", 0, place.count - 1));
  if (variable("SLURM_LOCALID") != nullptr) {
    place.local = static_cast<int>(number_of(variable, "SLURM_LOCALID", 0, most_ranks));
  }
  if (text_of(variable, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) == "1") place.on_machine = place.count;
  place.address = text_of(variable, {"MASTER_ADDR"});
  if (place.address.empty()) {
    place.address = first_machine(text_of(variable, {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"}));
  }
  if (place.address.empty()) place.address = text_of(variable, {"SLURM_LAUNCH_NODE_IPADDR"});
  if (place.address.empty()) {
    reject_input("ranks", "Slurm names no machine of rank 0", way_out("set MASTER_ADDR to its address"));
  }
  constexpr int first_port = 20000, ports = 10000;
  constexpr int steps_apart = 1000;  // steps of a job may run at the same time
  const std::string job = text_of(variable, {"SLURM_JOB_ID"}),
                    step = text_of(variable, {"SLURM_STEP_ID", "SLURM_STEPID"});
  place.run = job + "." + step;
  place.port = static_cast<uint16_t>(
      first_port +
      (std::strtoul(job.c_str(), nullptr, 10) + std::strtoul(step.c_str(), nullptr, 10) * steps_apart) % ports);
  if (variable("MASTER_PORT") != nullptr) {
    place.port = static_cast<uint16_t>(number_of(variable, "MASTER_PORT", 1, 65535));
  }
  return place;
}

}  // namespace

std::string first_machine(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const size_t number_end = list.find_first_of("-,]", end);
  const size_t close = list.find(']', end);
  if (number_end == std::string::npos || close == std::string::npos) return {};
  const size_t next = list.find(',', close);
  return list.substr(0, end) + list.substr(end + 1, number_end - end - 1) +
         list.substr(close + 1, next == std::string::npos ? next : next - close - 1);
}

std::optional<RankPlace> find_rank(const Environment& variable) {
  RankPlace place;
  if (variable("WORLD_SIZE") != nullptr) {
    place = from_torchrun(variable);
  } else if (under_srun(variable)) {
    place = from_slurm(variable);
  }
  if (place.count == 1) return std::nullopt;
  return place;
}

std::optional<RankPlace> find_rank() {
  return find_rank([](const char* name) -> const char* { return std::getenv(name); });
}

RankHome own_home() {
  RankHome home;
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) == 0) home.machine = name;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return home;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    home.cores.resize(core, '0');
    home.cores += '1';
  }
  return home;
}

Neighbours neighbours(const std::vector<RankHome>& homes, size_t rank) {
  const RankHome& own = homes[rank];
  const auto shares_cores = [&](const RankHome& other) {
    for (size_t core = 0; core < std::min(own.cores.size(), other.cores.size()); ++core) {
      if (own.cores[core] == '1' && other.cores[core] == '1') return true;
    }
    return own.cores.empty() || other.cores.empty();
  };
  Neighbours found;
  for (size_t other = 0; other < homes.size(); ++other) {
    if (homes[other].machine != own.machine) continue;
    ++found.on_machine;
    found.before += other < rank ? 1 : 0;
    found.on_cores += shares_cores(homes[other]) ? 1 : 0;
  }
  return found;
}

}  // namespace myxtts
