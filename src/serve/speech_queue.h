// Requests that are being spoken. One thread speaks them all, a step of one of them at a time, because a voice is for
// one thread: always the one whose listener would run out of sound first, so that many are heard at once without gaps.
#pragma once

#include "base/clock.h"
#include "serve/served_voice.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace myxtts {

// One request, shared by the thread that speaks and the one that sends.
class SpeechJob {
 public:
  SpeechJob(SpeechRequest request, std::optional<Clip> reference)
      : request_(std::move(request)), reference_(std::move(reference)) {}

  // All samples that were made since; none at the end; nothing if `patience` ended first. Throws the voice's Error.
  std::optional<std::vector<float>> take(std::chrono::milliseconds patience);

 private:
  friend class SpeechQueue;

  void put(const std::vector<float>& samples, bool over);
  void put(std::exception_ptr error);
  void cancel();
  bool over() const;
  size_t unsent_samples() const;

  const SpeechRequest request_;
  const std::optional<Clip> reference_;
  // Of the thread that speaks. `due_s`: when it is its turn; a while before the listener has heard all there is.
  SpokenText text_;
  bool heard_ = false;
  double due_s_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<float> samples_;
  std::exception_ptr error_;
  bool over_ = false;  // spoken, failed or cancelled
};

class SpeechQueue {
 public:
  // At most `capacity` requests at a time.
  SpeechQueue(ServedVoice voice, size_t capacity);
  ~SpeechQueue();  // ends what is still being spoken
  SpeechQueue(const SpeechQueue&) = delete;
  SpeechQueue& operator=(const SpeechQueue&) = delete;

  // Null if there is no room. Whoever drops the job cancels it. Any thread.
  std::shared_ptr<SpeechJob> add(SpeechRequest request, std::optional<Clip> reference);
  size_t length() const;

 private:
  bool wait_for_jobs();                            // false when closed
  std::shared_ptr<SpeechJob> first_new() const;    // null: none
  std::shared_ptr<SpeechJob> most_urgent() const;  // null: none can be spoken on now
  void begin(SpeechJob& job) const;
  void step(SpeechJob& job) const;
  void work();

  const ServedVoice voice_;
  const size_t capacity_;
  const Stopwatch clock_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::list<std::shared_ptr<SpeechJob>> jobs_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace myxtts
