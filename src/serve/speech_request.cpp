#include "serve/speech_request.h"

#include "base/error.h"
#include "base/nearest.h"
#include "serve/base64.h"

#include <algorithm>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

using Json = nlohmann::json;

constexpr const char* where = "serve";

const std::vector<std::string>& known_fields() {
  static const std::vector<std::string> names = {"model",    "input",     "voice",        "response_format", "speed",
                                                 "language", "stream",    "temperature",  "steps",           "guidance",
                                                 "seed",     "reference", "stream_format"};
  return names;
}

void check_name(const std::string& name) {
  const std::vector<std::string>& known = known_fields();
  if (std::ranges::find(known, name) != known.end()) return;
  const std::string shown = name.substr(0, 40), near = nearest(shown, known);
  if (edit_distance(shown, near) <= 2) {
    reject_input(where, "'{}' is not a field of a request", shown, way_out("did you mean '{}'?", near));
  }
  reject_input(where, "'{}' is not a field of a request", shown, way_out("there are {}", fmt::join(known, ", ")));
}

// The body as one flat object. Its names are checked while it is read, so that nothing large or deep is ever built.
Json read_object(std::string_view body) {
  std::set<std::string> seen;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto name = parsed.get<std::string>();
      check_name(name);
      if (!seen.insert(name).second) reject_input(where, "'{}' is in the request twice", name, way_out("give it once"));
    }
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth > 0) {
      reject_input(where, "a field of the request is a list or an object",
                   way_out("every field is a text, a number, true or false"));
    }
    return true;
  };
  try {
    Json object = Json::parse(body.begin(), body.end(), check);
    if (!object.is_object()) {
      reject_input(where, "the body is JSON, but not an object", way_out("send {}", R"({"input": "..."})"));
    }
    return object;
  } catch (const Json::parse_error& error) {
    reject_input(where, "the body is not JSON in UTF-8 (at byte {})", error.byte,
                 way_out("send an object such as {}", R"({"input": "Good morning."})"));
  } catch (const Json::exception&) {  // a number that no double can hold
    reject_input(where, "a number in the body is too large", way_out("see the ranges of the fields"));
  }
}

// Each takes a field only if it is there.
void take(const Json& object, const char* name, std::string& into) {
  if (!object.contains(name)) return;
  if (!object[name].is_string())
    reject_input(where, "'{}' is not a string", name, way_out("put it in quotation marks"));
  into = object[name].get<std::string>();
}

void take(const Json& object, const char* name, bool& into) {
  if (!object.contains(name)) return;
  if (!object[name].is_boolean()) reject_input(where, "'{}' is neither true nor false", name, way_out("give one"));
  into = object[name].get<bool>();
}

std::optional<double> number(const Json& object, const char* name, double least, double most) {
  if (!object.contains(name)) return {};
  const Json& value = object[name];
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most)) {
    reject_input(where, "'{}' is {}", name, value.is_number() ? value.dump() : "no number",
                 way_out("it must be a number from {} to {}", least, most));
  }
  return value.get<double>();
}

std::optional<uint64_t> whole_number(const Json& object, const char* name, uint64_t least, uint64_t most) {
  if (!object.contains(name)) return {};
  const Json& value = object[name];
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most) {
    reject_input(where, "'{}' is {}", name, value.is_number() ? value.dump() : "no number",
                 way_out("it must be a whole number from {} to {}", least, most));
  }
  return value.get<uint64_t>();
}

void check_input(const std::string& input, const RequestLimits& limits) {
  if (input.empty()) reject_input(where, "'input' is missing or empty", way_out("it is the text to say"));
  const auto letters =
      static_cast<size_t>(std::ranges::count_if(input, [](char byte) { return (byte & 0xC0) != 0x80; }));
  if (letters > limits.text_letters) {
    reject_input(where, "'input' has {} characters", letters,
                 way_out("send at most {}, sentence by sentence", limits.text_letters));
  }
  const auto is_control = [](char byte) {
    return (static_cast<unsigned char>(byte) < ' ' && byte != '\n' && byte != '\r' && byte != '\t') || byte == '\x7f';
  };
  const auto control = std::ranges::find_if(input, is_control);
  if (control != input.end()) {
    reject_input(where, "'input' has the control character U+{:04X}", static_cast<unsigned>(*control),
                 way_out("take it out"));
  }
}

void check_model(const std::string& model) {
  if (model == "myxtts" || model == "tts-1") return;
  reject_input(where, "'model' is '{}'", model.substr(0, 40),
               way_out("leave it out, or give myxtts or tts-1: both are the voice that is served"));
}

SoundFormat format_named(const std::string& name) {
  if (name == "wav") return SoundFormat::wav;
  if (name == "pcm") return SoundFormat::pcm;
  reject_input(where, "'response_format' is '{}'", name.substr(0, 40), way_out("it may be wav or pcm"));
}

// As OpenAI's clients say it: absent, or `stream`.
bool asks_for_stream(const std::string& format) {
  if (!format.empty() && format != "audio") {
    reject_input(where, "'stream_format' is '{}'", format.substr(0, 40),
                 way_out("it may be audio: the sound itself, as it is made"));
  }
  return format == "audio";
}

std::string decoded_reference(const std::string& base64, const RequestLimits& limits) {
  if (base64.size() / 4 > limits.reference_bytes / 3) {
    reject_input(where, "'reference' is too large", way_out("send a clip of at most {} bytes", limits.reference_bytes));
  }
  std::optional<std::string> clip = decode_base64(base64);
  if (!clip || clip->empty()) {
    reject_input(where, "'reference' is not a clip in base64",
                 way_out("encode the bytes of the file, without line breaks"));
  }
  return *std::move(clip);
}

}  // namespace

SpeechRequest parse_speech_request(std::string_view body, const RequestLimits& limits) {
  const Json object = read_object(body);
  SpeechRequest request;
  take(object, "input", request.input);
  check_input(request.input, limits);
  take(object, "voice", request.voice);
  take(object, "language", request.language);
  take(object, "stream", request.stream);
  std::string model = "myxtts", format = "wav", stream_format, reference;
  take(object, "stream_format", stream_format);
  request.stream = asks_for_stream(stream_format) || request.stream;
  take(object, "model", model);
  check_model(model);
  take(object, "response_format", format);
  request.format = format_named(format);
  take(object, "reference", reference);
  if (object.contains("reference")) request.reference = decoded_reference(reference, limits);
  request.speed = number(object, "speed", 0.25, 4).value_or(1);
  request.temperature = number(object, "temperature", 0, 2);
  request.guidance = number(object, "guidance", 0, 10);
  request.steps = whole_number(object, "steps", 1, 64);
  request.seed = whole_number(object, "seed", 0, UINT64_MAX);
  return request;
}

}  // namespace myxtts
