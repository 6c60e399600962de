#include "synth/voice_description.h"

#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"
#include "features/mel_spec.h"
#include "settings/config_file.h"
#include "settings/settings.h"
#include "text/clauses.h"
#include "text/cleaner.h"
#include "text/phonemes.h"
#include "text/sentences.h"
#include "text/utf8.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

namespace myxtts {
namespace {

// A tag such as en, fa or pt-br. It becomes an argument of espeak-ng and a line of Python, and a file may be of
// anybody.
bool is_language(std::string_view tag) {
  const auto is_plain = [](unsigned char letter) { return letter < 0x80 && std::isalnum(letter) != 0; };
  return !tag.empty() && is_plain(static_cast<unsigned char>(tag.front())) &&
         std::ranges::all_of(tag, [&](char letter) {
           return is_plain(static_cast<unsigned char>(letter)) || letter == '_' || letter == '+' || letter == '-';
         });
}

void check_languages(const VoiceDescription& voice, const std::filesystem::path& path) {
  std::vector<std::string> languages = voice.languages;
  languages.push_back(voice.config.data.language);
  const auto wrong = std::ranges::find_if_not(languages, is_language);
  if (wrong == languages.end()) return;
  reject_input("checkpoint", "{} has a language that is no tag such as en or fa: {}", path.string(),
               nlohmann::json(wrong->substr(0, 40)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace

VoiceSpec VoiceDescription::spec() const {
  VoiceSpec spec;
  spec.size = model_size(config.model.size);
  spec.vocabulary = static_cast<int64_t>(vocabulary.size());
  spec.n_mels = resolve_mel_spec(config).n_mels;
  spec.mel_mean = mel_mean;
  spec.mel_std = mel_std;
  spec.convolutions = convolutions;
  spec.speakers = static_cast<int64_t>(speakers.size()), spec.languages = static_cast<int64_t>(languages.size());
  return spec;
}

std::map<std::string, std::string> VoiceDescription::to_metadata() const {
  const nlohmann::json mel = {{"mean", mel_mean}, {"deviation", mel_std}};
  std::map<std::string, std::string> metadata = {{"config", config_to_yaml(config)},
                                                 {"vocabulary", vocabulary.to_json()},
                                                 {"corpus_mel", mel.dump()},
                                                 {"convolutions", convolutions ? "true" : "false"}};
  if (!speakers.empty()) {
    metadata["speakers"] = nlohmann::json(speakers).dump();
    metadata["languages"] = nlohmann::json(languages).dump();
    metadata["default_speaker"] = default_speaker;
  }
  return metadata;
}

VoiceDescription VoiceDescription::from_metadata(const std::map<std::string, std::string>& metadata,
                                                 const std::filesystem::path& path) {
  const auto text = [&](const char* key) -> const std::string& {
    const auto found = metadata.find(key);
    if (found == metadata.end())
      reject_input("checkpoint", "{} is not a checkpoint of a voice: it has no '{}'", path.string(), key);
    return found->second;
  };
  VoiceDescription voice;
  voice.config = config_from_yaml(text("config"), path.string());
  voice.vocabulary = Vocabulary::from_json(text("vocabulary"), path.string());
  voice.convolutions = metadata.contains("convolutions") && metadata.at("convolutions") == "true";
  try {
    const nlohmann::json mel = parse_json(text("corpus_mel"));
    voice.mel_mean = mel.at("mean");
    voice.mel_std = mel.at("deviation");
    if (metadata.contains("speakers")) {
      voice.speakers = parse_json(text("speakers")).get<std::vector<std::string>>();
      voice.languages = parse_json(text("languages")).get<std::vector<std::string>>();
      voice.default_speaker = text("default_speaker");
    }
  } catch (const nlohmann::json::exception& error) {
    reject_input("checkpoint", "{} is damaged: {}", path.string(), error.what());
  }
  check_languages(voice, path);
  return voice;
}

std::string with_known_marks(const std::string& text, const Vocabulary& vocabulary) {
  const std::set<char32_t> known = vocabulary.symbols();
  std::vector<char32_t> letters;
  for (const char32_t letter : decode_utf8(text)) {
    const char mark = clause_mark(letter);
    if (mark == 0 || known.contains(letter)) {
      letters.push_back(letter);
      continue;
    }
    const bool ends_sentence = mark == '.' || mark == '!' || mark == '?';
    const std::u32string nearest = {static_cast<char32_t>(mark), ends_sentence ? U'.' : U',',
                                    ends_sentence ? U'.' : U'،'};
    const auto found = std::ranges::find_if(nearest, [&](char32_t other) { return known.contains(other); });
    if (found != nearest.end()) letters.push_back(*found);
  }
  return encode_utf8(letters);
}

std::vector<uint16_t> tokens_of_text(const VoiceDescription& voice, const std::string& text,
                                     const std::string& wanted_language) {
  const DataConfig& data = voice.config.data;
  const std::string& language = wanted_language.empty() ? data.language : wanted_language;
  std::string symbols = clean_text(text, language);
  if (data.text_tokens == "phonemes") symbols = to_phonemes({symbols}, language, {}, 1, {}).front();
  symbols = with_known_marks(symbols, voice.vocabulary);
  try {
    return voice.vocabulary.encode(symbols, data.blank_tokens);
  } catch (const Error& error) {
    reject_input("synth", "the voice was not trained on a character of \"{}\": {}", text, error.what());
  }
}

// A sentence that cleaning does not make too long stays as it was written, because splitting needs capitals and points.
std::vector<std::string> pieces_of_text(const VoiceDescription& voice, const std::string& text,
                                        const std::string& language) {
  const auto longest = static_cast<size_t>(voice.config.data.max_text_length);
  std::vector<std::string> pieces;
  for (std::string& sentence : split_sentences(text, longest)) {
    const std::string cleaned = clean_text(sentence, language);
    if (decode_utf8(cleaned).size() <= longest) {
      pieces.push_back(std::move(sentence));
    } else {
      std::ranges::move(split_sentences(cleaned, longest), std::back_inserter(pieces));
    }
  }
  return pieces;
}

namespace {

int64_t number_in(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return found - names.begin();
  if (names.empty()) reject_input("synth", "the voice has one {}, and no names", what);
  reject_input("synth", "the voice has no {} '{}'", what, name, way_out("did you mean {}?", nearest(name, names)));
}

}  // namespace

int64_t speaker_number(const VoiceDescription& voice, const std::string& speaker) {
  return number_in(voice.speakers, speaker, "speaker");
}

int64_t language_number(const VoiceDescription& voice, const std::string& language) {
  return number_in(voice.languages, language, "language");
}

void check_same_voice(const std::filesystem::path& path, const VoiceDescription& saved,
                      const VoiceDescription& wanted) {
  const auto differ = [&](const std::string& what, const std::string& was, const std::string& now) {
    reject_input("checkpoint", "{} has {} {}, this run {}", path.string(), what, was, now,
                 way_out("give another --checkpoint-dir, with --from {} to begin with its weights, or "
                         "--reset-training to begin anew",
                         path.string()));
  };
  for (const Setting& setting : all_settings()) {
    if (!setting.fixed_on_resume) continue;
    const std::string was = value_text(setting, saved.config), now = value_text(setting, wanted.config);
    if (was != now) differ(setting.name(), was, now);
  }
  const MelSpec saved_mel = resolve_mel_spec(saved.config), wanted_mel = resolve_mel_spec(wanted.config);
  const auto was = saved_mel.values(), now = wanted_mel.values();
  for (size_t i = 0; i < was.size(); ++i) {
    if (was[i] == now[i]) continue;
    differ("the log-mel", fmt::format("{} with {} {}", saved_mel.name, was[i].first, was[i].second),
           fmt::format("{} with {}", wanted_mel.name, now[i].second));
  }
  if (saved.speakers != wanted.speakers || saved.languages != wanted.languages) {
    differ("speakers", fmt::format("{} in {}", saved.speakers.size(), fmt::join(saved.languages, ", ")),
           fmt::format("{} in {}", wanted.speakers.size(), fmt::join(wanted.languages, ", ")));
  }
  if (saved.vocabulary.to_json() != wanted.vocabulary.to_json()) {
    const std::set<char32_t> before = saved.vocabulary.symbols(), after = wanted.vocabulary.symbols();
    std::vector<char32_t> missing, added;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(missing));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
    const auto list = [](const std::vector<char32_t>& symbols) {
      std::string text;
      for (const char32_t symbol : symbols) text += fmt::format(" U+{:04X}", static_cast<uint32_t>(symbol));
      return symbols.empty() ? std::string(" nothing") : text;
    };
    differ("a vocabulary of " + std::to_string(before.size()) + " characters:", "more than here is" + list(missing),
           "more than there is" + list(added));
  }
}

}  // namespace myxtts
