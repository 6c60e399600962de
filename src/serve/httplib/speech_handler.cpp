#include "serve/httplib/speech_handler.h"

#include "audio/wav.h"
#include "base/clock.h"
#include "serve/answers.h"

#include <algorithm>

namespace myxtts {

using Samples = std::vector<float>;

// A job and the client who waits for it.
struct SpeechListener {
  std::shared_ptr<SpeechJob> job;
  std::function<bool()> is_there;
  Stopwatch since_request;
  double most_samples = 0, heard_samples = 0;

  // The next samples; none at the end; nothing if the client has left. Throws Error if there are too many.
  std::optional<Samples> next() {
    constexpr std::chrono::milliseconds patience(100);
    for (;;) {
      std::optional<Samples> samples = job->take(patience);
      if (!is_there()) return {};
      if (!samples) continue;
      heard_samples += static_cast<double>(samples->size());
      if (heard_samples > most_samples) {
        reject_input("serve", "the speech is too long", way_out("send the text in parts, or let it be spoken faster"));
      }
      return samples;
    }
  }
};

namespace {

// Nothing if it did not come whole; the status is then set.
std::optional<std::string> read_body(const httplib::Request& http, httplib::Response& response,
                                     const httplib::ContentReader& reader, const RequestLimits& limits) {
  std::string body;
  if (!http.has_header("Content-Length") && !http.has_header("Transfer-Encoding")) return body;
  bool too_large = false;
  const bool whole = reader([&](const char* bytes, size_t count) {
    too_large = body.size() + count > limits.body_bytes;
    if (!too_large) body.append(bytes, count);
    return !too_large;
  });
  if (whole) return body;
  response.status = too_large ? 413 : 400;
  return {};
}

std::string content_type(SoundFormat format, int sample_rate) {
  return format == SoundFormat::wav ? "audio/wav" : fmt::format("audio/pcm; rate={}", sample_rate);
}

bool send(httplib::DataSink& sink, const std::vector<std::byte>& bytes) {
  return sink.write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// All that follows `samples`, as it is made. False if the client left or the voice failed: the answer breaks off then.
bool send_stream(httplib::DataSink& sink, SpeechListener& listener, Samples samples, SoundFormat format,
                 int sample_rate) {
  std::vector<std::byte> bytes;
  if (format == SoundFormat::wav) bytes = make_wav_header(unknown_wav_bytes, sample_rate);
  while (!samples.empty()) {
    append_pcm_16(bytes, samples);
    if (!send(sink, bytes)) return false;
    bytes.clear();
    std::optional<Samples> more = listener.next();
    if (!more) return false;
    samples = *std::move(more);
  }
  sink.done();
  return true;
}

}  // namespace

void set_error(httplib::Response& response, int status, const std::string& message) {
  response.status = status;
  response.set_content(error_answer(status, message), "application/json");
}

void SpeechHandler::answer(const httplib::Request& http, httplib::Response& response,
                           const httplib::ContentReader& reader) const {
  try {
    speak(http, response, reader);
  } catch (const Error& error) {
    warn_of(error);
    set_error(response, status_of(error), error.sentence());
  } catch (const std::exception& error) {
    warn_of(error);
    response.status = 500;
  }
}

// Unless it is the client's own.
void SpeechHandler::warn_of(const std::exception& error) const {
  const auto* const known = dynamic_cast<const Error*>(&error);
  if (settings_.warn && (known == nullptr || status_of(*known) >= 500)) settings_.warn(error.what());
}

void SpeechHandler::speak(const httplib::Request& http, httplib::Response& response,
                          const httplib::ContentReader& reader) const {
  const auto body = read_body(http, response, reader, settings_.limits);
  if (!body) return;
  const Stopwatch since_request;
  SpeechRequest request = parse_speech_request(*body, settings_.limits);
  check_request(request, voice_);
  std::optional<Clip> reference = decode_reference(request, settings_.limits);
  request.reference.clear();
  const SoundFormat format = request.format;
  const bool streams = request.stream;
  const auto listener = std::make_shared<SpeechListener>();
  listener->since_request = since_request;
  listener->most_samples = settings_.limits.sound_s * voice_.sample_rate;
  listener->is_there = [still = http.progress] { return still(0, 0); };
  listener->job = queue_.add(std::move(request), std::move(reference));
  if (!listener->job) {
    response.status = 429;
    response.set_header("Retry-After", "2");
    return;
  }
  // What cannot be said shows at the first samples, while the status can still be chosen.
  std::optional<Samples> first = listener->next();
  if (!first) {
    response.status = 499;
    return;
  }
  metrics_.add_first_sample(since_request.seconds());
  if (streams) {
    send_as_made(response, listener, *std::move(first), format);
  } else {
    send_whole(response, *listener, *first, format);
  }
}

void SpeechHandler::send_as_made(httplib::Response& response, const std::shared_ptr<SpeechListener>& listener,
                                 Samples first, SoundFormat format) const {
  const auto provide = [this, listener, format, first = std::move(first)](size_t, httplib::DataSink& sink) {
    try {
      if (!send_stream(sink, *listener, first, format, voice_.sample_rate)) return false;
      count(*listener);
      return true;
    } catch (const std::exception& error) {
      warn_of(error);
      return false;
    }
  };
  response.set_chunked_content_provider(content_type(format, voice_.sample_rate), provide);
}

void SpeechHandler::send_whole(httplib::Response& response, SpeechListener& listener, const Samples& first,
                               SoundFormat format) const {
  std::vector<std::byte> bytes;
  if (format == SoundFormat::wav) bytes = make_wav_header(unknown_wav_bytes, voice_.sample_rate);
  const size_t header_bytes = bytes.size();
  append_pcm_16(bytes, first);
  for (;;) {
    const std::optional<Samples> more = listener.next();
    if (!more) {
      response.status = 499;
      return;
    }
    if (more->empty()) break;
    append_pcm_16(bytes, *more);
  }
  count(listener);
  if (format == SoundFormat::wav) {
    std::ranges::copy(make_wav_header(static_cast<uint32_t>(bytes.size() - header_bytes), voice_.sample_rate),
                      bytes.begin());
  }
  response.set_content(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                       content_type(format, voice_.sample_rate));
}

void SpeechHandler::count(const SpeechListener& listener) const {
  metrics_.add_speech(listener.heard_samples / voice_.sample_rate, listener.since_request.seconds());
}

}  // namespace myxtts
