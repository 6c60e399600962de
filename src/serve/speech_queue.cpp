#include "serve/speech_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace myxtts {
namespace {

// So far ahead of silence a listener should be before somebody else's text begins: a step of that cannot be
// interrupted, and the first piece of a text is short.
constexpr double lead_s = 1;
// Who reads slower than the text is spoken is not spoken for beyond this.
constexpr double most_unsent_s = 60;
// While all wait for their pronunciation or their listeners.
constexpr std::chrono::milliseconds look_again(2);

}  // namespace

std::optional<std::vector<float>> SpeechJob::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return over_ || !samples_.empty(); })) return {};
  if (samples_.empty() && error_) std::rethrow_exception(error_);
  return std::exchange(samples_, {});
}

void SpeechJob::put(const std::vector<float>& samples, bool over) {
  const std::lock_guard lock(mutex_);
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  over_ = over_ || over;
  changed_.notify_all();
}

void SpeechJob::put(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  over_ = true;
  changed_.notify_all();
}

void SpeechJob::cancel() { put({}, true); }

bool SpeechJob::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

size_t SpeechJob::unsent_samples() const {
  const std::lock_guard lock(mutex_);
  return samples_.size();
}

SpeechQueue::SpeechQueue(ServedVoice voice, size_t capacity)
    : voice_(std::move(voice)), capacity_(capacity), thread_([this] { work(); }) {}

SpeechQueue::~SpeechQueue() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& job : jobs_) job->cancel();
    filled_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<SpeechJob> SpeechQueue::add(SpeechRequest request, std::optional<Clip> reference) {
  const auto job = std::make_shared<SpeechJob>(std::move(request), std::move(reference));
  const std::lock_guard lock(mutex_);
  if (closed_ || jobs_.size() >= capacity_) return nullptr;
  job->due_s_ = clock_.seconds();
  jobs_.push_back(job);
  filled_.notify_all();
  return {job.get(), [job](SpeechJob*) { job->cancel(); }};
}

size_t SpeechQueue::length() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

bool SpeechQueue::wait_for_jobs() {
  std::unique_lock lock(mutex_);
  jobs_.remove_if([](const auto& job) { return job->over(); });
  filled_.wait(lock, [&] { return closed_ || !jobs_.empty(); });
  return !closed_;
}

std::shared_ptr<SpeechJob> SpeechQueue::first_new() const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(jobs_, [](const auto& job) { return !job->text_.next && !job->over(); });
  return found == jobs_.end() ? nullptr : *found;
}

std::shared_ptr<SpeechJob> SpeechQueue::most_urgent() const {
  const std::lock_guard lock(mutex_);
  const auto most_unsent = static_cast<size_t>(most_unsent_s * voice_.facts.sample_rate);
  std::shared_ptr<SpeechJob> urgent;
  for (const auto& job : jobs_) {
    if (urgent && urgent->due_s_ <= job->due_s_) continue;
    if (job->text_.next && !job->over() && job->unsent_samples() < most_unsent && job->text_.ready()) urgent = job;
  }
  return urgent;
}

void SpeechQueue::begin(SpeechJob& job) const {
  try {
    job.text_ = voice_.begin(job.request_, job.reference_);
  } catch (...) {
    job.put(std::current_exception());
  }
}

void SpeechQueue::step(SpeechJob& job) const {
  try {
    const std::vector<float> samples = job.text_.next();
    if (!std::exchange(job.heard_, true)) job.due_s_ = clock_.seconds() - lead_s;
    job.due_s_ += static_cast<double>(samples.size()) / voice_.facts.sample_rate;
    job.put(samples, samples.empty());
  } catch (...) {
    job.put(std::current_exception());
  }
}

// One that is new is begun before the next step, so that its pronunciation is found meanwhile.
void SpeechQueue::work() {
  while (wait_for_jobs()) {
    const auto added = first_new(), urgent = most_urgent();
    if (added) begin(*added);
    if (urgent) step(*urgent);
    if (!added && !urgent) std::this_thread::sleep_for(look_again);
  }
}

}  // namespace myxtts
