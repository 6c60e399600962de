#include "synth/export/readme.h"

#include "model/voice_spec.h"

#include <fmt/format.h>

namespace myxtts {
namespace {

// {0} language, {1} sample rate, {2} precision, {3} espeak-ng-data, {4} temperature, {5} speakers, {6} a text
constexpr char page[] = R"(# A voice for sherpa-onnx

Made by MyXTTS. Language `{0}`, {1} Hz, {2} weights.

| file | what it is |
|---|---|
| `model.onnx` | acoustic model: tokens to log-mel |
| `vocoder.onnx` | log-mel to sound |
| `tokens.txt` | the phonemes of espeak-ng that the voice knows |

{3}
In this folder, after `pip install sherpa-onnx`:

```python
import sherpa_onnx as so
matcha = so.OfflineTtsMatchaModelConfig(acoustic_model="model.onnx", vocoder="vocoder.onnx", tokens="tokens.txt", data_dir="espeak-ng-data", noise_scale={4})
voice = so.OfflineTts(so.OfflineTtsConfig(model=so.OfflineTtsModelConfig(matcha=matcha, num_threads=2)))
audio = voice.generate("{6}", sid=0, speed=1.0)
so.write_wave("speech.wav", audio.samples, audio.sample_rate)
```

`noise_scale` is the temperature. {4} is the default of `myxtts synth`; sherpa-onnx's own default is 1, which sounds rougher. `speed=2` is twice as fast.
{5}
sherpa-onnx runs the same files on Android, iOS, Raspberry Pi, in browsers, and from C, C++, C#, Go, Java, Kotlin, Swift, Dart and Rust. Its phonemes come from espeak-ng, without the text normalisation of `myxtts synth`: write out numbers, dates and abbreviations that should be read in a certain way.

<div dir="rtl">

# صدایی برای sherpa-onnx

این پوشه را MyXTTS ساخته است. زبان آن `{0}` است و نرخ نمونه‌برداری {1} هرتز.

فایل `model.onnx` از توکن‌ها log-mel می‌سازد و `vocoder.onnx` از log-mel صدا. در `tokens.txt` واج‌هایی از espeak-ng آمده‌اند که این صدا می‌شناسد. پوشه‌ی `espeak-ng-data` هم لازم است؛ بالا نوشته شده که از کجا می‌آید.

برای شنیدن، `pip install sherpa-onnx` را اجرا کنید و پنج خط بالا را در همین پوشه بنویسید. مقدار `noise_scale` همان temperature است: {4} پیش‌فرض `myxtts synth` است و پیش‌فرض خود sherpa-onnx، یعنی 1، زبرتر به گوش می‌رسد. با `speed=2` گفتار دو برابر تند می‌شود و `sid` شماره‌ی گوینده است.

همین فایل‌ها در Android، iOS، Raspberry Pi و مرورگر هم کار می‌کنند. sherpa-onnx متن را مانند `myxtts synth` نرمال نمی‌کند؛ عددها، تاریخ‌ها و کوته‌نوشت‌ها را با حروف بنویسید.

</div>
)";

constexpr char with_data[] =
    "`espeak-ng-data` is the data of espeak-ng, under GPL-3.0-or-later; whoever passes it on must keep to that "
    "licence.\n";
constexpr char without_data[] =
    R"(The phonemes need the data of espeak-ng, which is under GPL-3.0-or-later and so not part of this folder. On Debian and Ubuntu:

```
apt-get install espeak-ng-data
ln -s /usr/lib/*/espeak-ng-data espeak-ng-data
```
)";

std::string speakers_of(const ExportedVoice& voice) {
  if (voice.speakers.empty()) return {};
  std::string text = "\n| `sid` | speaker |\n|---|---|\n";
  for (size_t i = 0; i < voice.speakers.size(); ++i) text += fmt::format("| {} | {} |\n", i, voice.speakers[i]);
  return text;
}

}  // namespace

std::string export_readme(const ExportedVoice& voice) {
  const char* const text = voice.language.starts_with("fa") ? "سلام، حال شما چطور است؟" : "Good morning, how are you?";
  return fmt::format(page, voice.language, voice.sample_rate, voice.precision,
                     voice.espeak_data ? with_data : without_data, SynthesisOptions{}.temperature, speakers_of(voice),
                     text);
}

}  // namespace myxtts
