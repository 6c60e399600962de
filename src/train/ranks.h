// The ranks of a run: processes that each compute some rows of every batch. They meet at a store, exchange messages
// through a backend of c10d, and all call the same functions here in the same order. The thread that trains.
//
// When a rank is lost, the functions of the others throw an Error that names it.
#pragma once

#include "base/clock.h"
#include "model/dropout.h"
#include "train/rank_place.h"
#include "train/rank_store.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace myxtts {

class DeviceSum;

class Ranks {
 public:
  // Waits for all of them. They must be of the same version. `timeout_s`: for the meeting, and for each message.
  Ranks(const RankPlace& place, const std::string& version, double timeout_s,
        const std::function<void(const std::string&)>& warn = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  const RankPlace& place() const { return place_; }
  bool writes() const { return place_.rank == 0; }
  RowPlace rows() const { return {place_.rank, place_.count}; }

  // In place. Summed in an order that is the same on every rank, so the result is too. What lies on a GPU crosses host
  // memory, in float.
  void sum(at::Tensor& values);
  std::vector<int64_t> largest(const std::vector<int64_t>& numbers);  // of each number, over all ranks
  void broadcast(at::Tensor& values);                                 // rank 0's
  std::string broadcast(const std::string& text);                     // rank 0's, on every rank
  std::vector<std::string> gather(const std::string& text);           // every rank's, on every rank
  // However long it takes, as long as the hearts of all ranks beat.
  void wait_for_all();

  // From now on gradients are summed by NCCL on the GPUs, one of each rank. Throws Error on every rank if one cannot.
  void sum_on_devices(int device);
  DeviceSum* device_sum() const { return device_sum_.get(); }  // null: they are summed in host memory

  // Throws if a rank was lost: what this rank's GPU has computed since then is of no use.
  void check();
  bool sums_have_ended() const { return sums_have_ended_; }

  // The others hear why this one ends. To be called before it is destroyed because of an error.
  void leave(const std::string& why) noexcept;

  double waited_s() const { return waited_s_; }  // in sum() and largest(): for slower ranks, and for the messages

 private:
  void beat();
  void finish(const std::function<c10::intrusive_ptr<c10d::Work>()>& start, bool however_long = false);
  void wait_while_all_live(c10d::Work& work);
  void watch();
  void end_sums() noexcept;
  void hang_up();
  // `in_vain`: this rank has waited as long as it waits for a message.
  [[noreturn]] void lost(const std::string& reason, bool in_vain = false);

  RankPlace place_;
  const double timeout_s_;
  std::string meeting_;  // no other attempt's
  RankStore store_, heart_store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
  double waited_s_ = 0;
  bool told_ = false;                  // why this rank ends is known to the others
  std::atomic<int64_t> messages_ = 0;  // that this rank came to
  std::unique_ptr<DeviceSum> device_sum_;
  std::atomic<bool> watches_ = false, sums_have_ended_ = false;
  RankStore watch_store_;
  struct Watched {  // by the heart's thread
    int64_t messages = -1;
    std::string beat;
    Stopwatch message_came, beat_came;
  } watched_;
  // Shows that this process lives, on a connection of its own.
  std::thread heart_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
};

}  // namespace myxtts
