#include "synth/export/readme.h"

#include "model/voice_spec.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

// {0} language, {1} sample rate, {2} precision, {3} a row for lexicon.txt, {4} temperature, {5} speakers, {6} a text,
// {7} how to speak by the lexicon, {8} espeak-ng's data
constexpr char page[] = R"(# A voice for sherpa-onnx

Made by MyXTTS. Language `{0}`, {1} Hz, {2} weights.

| file | what it is |
|---|---|
| `model.onnx` | acoustic model: tokens to log-mel |
| `vocoder.onnx` | log-mel to sound |
| `tokens.txt` | the phonemes that the voice knows |
| `phonemes.py` | text to phonemes in Python, by the program espeak-ng |
{3}
In this folder, after `pip install sherpa-onnx` and `apt-get install espeak-ng`:

```python
import phonemes, sherpa_onnx as so
matcha = so.OfflineTtsMatchaModelConfig(acoustic_model="model.onnx", vocoder="vocoder.onnx", tokens="tokens.txt", noise_scale={4})
voice = so.OfflineTts(so.OfflineTtsConfig(model=so.OfflineTtsModelConfig(matcha=matcha, num_threads=2)))
audio = voice.generate("", phonemes.request("{6}", sid=0, speed=1.0))
so.write_wave("speech.wav", audio.samples, audio.sample_rate)
```

`noise_scale` is the temperature. {4} is the default of `myxtts synth`; sherpa-onnx's own is 1, which sounds rougher. `speed=2` is twice as fast.
{5}
## Text without Python

sherpa-onnx runs these files on Android, iOS, Raspberry Pi, in browsers, and from C, C++, C#, Go, Java, Kotlin, Swift, Dart and Rust.

{7}
- Version 1 has espeak-ng inside. Give it the folder of espeak-ng's data as `data_dir`, without `lexicon`. {8}

No version normalises text as `myxtts synth` does: write out numbers, dates and abbreviations.

<div dir="rtl">

# صدایی برای sherpa-onnx

این پوشه را MyXTTS ساخته است: زبان `{0}`، نرخ نمونه‌برداری {1} هرتز.

فایل `model.onnx` از توکن‌ها لاگ‌مل می‌سازد، `vocoder.onnx` از لاگ‌مل صدا، و `tokens.txt` واج‌هایی را دارد که این صدا می‌شناسد. `phonemes.py` با برنامه‌ی espeak-ng متن را به واج تبدیل می‌کند.

برای شنیدن، `pip install sherpa-onnx` و `apt-get install espeak-ng` را اجرا کنید و سپس پنج خط بالا را در همین پوشه. مقدار `noise_scale` همان temperature است: {4} پیش‌فرض `myxtts synth` است و پیش‌فرض خود sherpa-onnx، یعنی 1، خشن‌تر به گوش می‌رسد. با `speed=2` گفتار دو برابر تند می‌شود و `sid` شماره‌ی گوینده است.

همین فایل‌ها در Android، iOS، Raspberry Pi و مرورگر هم کار می‌کنند. نسخه‌ی 2 آنجا واژه‌نامه (`lexicon.txt`) می‌خواهد که `myxtts export --words FILE` می‌سازد؛ نسخه‌ی 1 خودش espeak-ng دارد و پوشه‌ی داده‌ی آن را با `data_dir` می‌گیرد. هیچ‌کدام متن را مانند `myxtts synth` نرمال نمی‌کنند: عددها، تاریخ‌ها و کوته‌نوشت‌ها را با حروف بنویسید.

</div>
)";

constexpr char lexicon_row[] = "| `lexicon.txt` | words and their phonemes, for sherpa-onnx 2 |\n";
constexpr char with_lexicon[] =
    "- Version 2 looks words up. Give it `lexicon.txt` as `lexicon`, and a text to `generate`. It skips words that are "
    "not there, and knows the marks `, . ; : ! ?` alone.";
constexpr char without_lexicon[] =
    "- Version 2 looks words up in a lexicon. `myxtts export --words FILE` writes one, of the words of any texts. Or "
    "give it phonemes, as `phonemes.py` does.";
constexpr char with_data[] =
    "`espeak-ng-data` is here; it is under GPL-3.0-or-later, which binds whoever passes it on.";
constexpr char without_data[] =
    "It is under GPL-3.0-or-later, so it is not here. Debian's package `espeak-ng-data` has it in "
    "`/usr/lib/*/espeak-ng-data`.";

constexpr char script[] = R"py("""Text to phonemes for sherpa-onnx 2, by the program espeak-ng."""
import re
import subprocess

LANGUAGE = {}
MARKS = str.maketrans("،؛؟…–—", ",;?.,,")  # the voice knows , . ; : ! ? alone


def phonemes(text):
    """The phonemes of a text, its clauses separated by their punctuation marks."""
    spoken = []
    for clause in re.split(r"(?<=[,.;:!?])\s+", text.translate(MARKS).strip()):
        words, marks = re.fullmatch(r"(.*?)([,.;:!?]*)", clause, re.DOTALL).groups()
        if words:
            command = ["espeak-ng", "-q", "--ipa", "-b", "1", "-v", LANGUAGE, "--stdin"]
            said = subprocess.run(command, input=words, capture_output=True, encoding="utf-8", check=True).stdout
            said = re.sub(r"\([^)]*\)", "", said)  # marks of a change of language
            spoken.append(" ".join(said.split()) + marks[:1])
    return " ".join(spoken)


def request(text, sid=0, speed=1.0):
    """What OfflineTts.generate() takes."""
    import sherpa_onnx

    request = sherpa_onnx.GenerationConfig()
    request.sid, request.speed, request.silence_scale = sid, speed, 1
    request.phoneme_codepoints = [[ord(phoneme) for phoneme in phonemes(text)]]
    return request
)py";

std::string speakers_of(const ExportedVoice& voice) {
  if (voice.speakers.empty()) return {};
  std::string text = "\n| `sid` | speaker |\n|---|---|\n";
  for (size_t i = 0; i < voice.speakers.size(); ++i) text += fmt::format("| {} | {} |\n", i, voice.speakers[i]);
  return text;
}

}  // namespace

std::string export_readme(const ExportedVoice& voice) {
  const char* const text = voice.language.starts_with("fa") ? "سلام، حال شما چطور است؟" : "Good morning, how are you?";
  return fmt::format(page, voice.language, voice.sample_rate, voice.precision, voice.lexicon ? lexicon_row : "",
                     SynthesisOptions{}.temperature, speakers_of(voice), text,
                     voice.lexicon ? with_lexicon : without_lexicon, voice.espeak_data ? with_data : without_data);
}

std::string phonemes_script(const std::string& language) {
  return fmt::format(script, nlohmann::json(language).dump());
}

}  // namespace myxtts
