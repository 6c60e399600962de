#!/usr/bin/env python3
"""Write index.html and index.fa.html into the demo's folder: what was spoken, to hear and to see. Called by tools/demo.

    tools/demo_page.py FOLDER --english TEXT --persian TEXT --sentence TEXT --steps N [--missing libtorch|espeak-ng|base]

A clip NAME is NAME.wav and NAME.png in FOLDER; a clip or page that is not there is left out. Nothing is loaded from elsewhere."""
import argparse
import base64
import html
import pathlib

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --edge: #d5d9e0; --link: #2563c9; --note: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e7eaf0; --edge: #3a404b; --link: #7db1ff; --note: #ff9a66; } }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; background: var(--paper); color: var(--ink); }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
header { display: flex; justify-content: space-between; align-items: baseline; }
a { color: var(--link); }
.clips { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
figure { display: flex; flex-direction: column; margin: 0; padding: .8rem 1rem; border: 1px solid var(--edge); border-radius: .5rem; }
figcaption strong { display: block; }
figcaption, blockquote { unicode-bidi: plaintext; }
img { width: 100%; height: 9rem; margin-top: .6rem; border-radius: .3rem; }
audio { width: 100%; margin-top: auto; padding-top: .6rem; }
blockquote { margin: .8rem 0; padding-inline-start: .8rem; border-inline-start: .25rem solid var(--edge); }
.missing { padding: .6rem 1rem; border-inline-start: .3rem solid var(--note); }
code { direction: ltr; unicode-bidi: isolate; overflow-wrap: anywhere; }
"""

WORDS = {
    "en": {
        "dir": "ltr", "digits": {}, "page": "index.html", "other": "index.fa.html", "other_name": "فارسی", "other_language": "fa",
        "title": "MyXTTS: the demo",
        "missing": {
            "libtorch": "This build has no libtorch: no voice speaks and none is trained.",
            "espeak-ng": "espeak-ng is not installed: the base voice, which reads phonemes, is left out.",
            "base": "There is no base voice to use: a voice was trained from nothing.",
        },
        "base": "The base voice",
        "base_text": "It comes with the program. One voice speaks both languages.",
        "english": "English", "persian": "Persian",
        "new": "A new voice",
        "tuned": "The base voice was fine-tuned for {steps} steps on a few minutes of a speaker that it had not heard, "
                 "a voice of espeak-ng. They do not hold this sentence:",
        "trained": "A voice was trained from nothing for {steps} steps on a few minutes of the built-in voice. "
                   "They do not hold this sentence:",
        "untrained": "A corpus was made, and one more clip by the same voice. It says:",
        "before": "Before", "before_text": "the base voice, given four clips of the speaker",
        "after": "After", "after_text": "the trained voice",
        "reference": "Reference", "reference_text": "the same sentence by the speaker, kept out of training",
        "spectrogram": "Spectrogram: {}",
        "pages": "More",
        "report": "Training report", "diagnosis": "What limited the training", "prepare": "The corpus, checked",
        "further": "To let the new voice say something else:",
    },
    "fa": {
        "dir": "rtl", "digits": str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹"), "page": "index.fa.html", "other": "index.html", "other_name": "English", "other_language": "en",
        "title": "اجرای نمایشی MyXTTS",
        "missing": {
            "libtorch": "این ساخت libtorch ندارد: هیچ صدایی سخن نمی‌گوید و هیچ صدایی آموزش نمی‌بیند.",
            "espeak-ng": "برنامه‌ی espeak-ng نصب نیست: صدای پایه که واج می‌خواند کنار گذاشته شد.",
            "base": "صدای پایه‌ای در دست نیست: صدایی از صفر آموزش دید.",
        },
        "base": "صدای پایه",
        "base_text": "همراه برنامه است. یک صدا به هر دو زبان سخن می‌گوید.",
        "english": "انگلیسی", "persian": "فارسی",
        "new": "صدای تازه",
        "tuned": "صدای پایه با چند دقیقه گفتار از گوینده‌ای که پیش‌تر نشنیده بود، یکی از صداهای <bdi>espeak-ng</bdi>، "
                 "{steps} گام ریزتنظیم شد. این جمله در آن گفتار نبود:",
        "trained": "صدایی از صفر، با چند دقیقه گفتار صدای درونی برنامه، {steps} گام آموزش دید. این جمله در آن گفتار نبود:",
        "untrained": "پیکره‌ای ساخته شد، و یک کلیپ دیگر با همان صدا که می‌گوید:",
        "before": "پیش از آموزش", "before_text": "صدای پایه، با شنیدن چهار کلیپ از گوینده",
        "after": "پس از آموزش", "after_text": "صدای آموزش‌دیده",
        "reference": "مرجع", "reference_text": "همان جمله از خود گوینده، بیرون از داده‌های آموزش",
        "spectrogram": "اسپکتروگرام: {}",
        "pages": "بیشتر",
        "report": "گزارش آموزش", "diagnosis": "گلوگاه آموزش", "prepare": "وارسی پیکره",
        "further": "تا صدای تازه جمله‌ی دیگری بگوید:",
    },
}


def embedded(file, kind):
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def clip(folder, name, words, text):
    """A card: what it is, a player, a spectrogram. Empty if the clip is not there."""
    sound, picture = folder / f"{name}.wav", folder / f"{name}.png"
    if not sound.exists():
        return ""
    title = words[name]
    image = f'<img src="{embedded(picture, "image/png")}" alt="{words["spectrogram"].format(title)}">' if picture.exists() else ""
    return (f"<figure><figcaption><strong>{title}</strong>{html.escape(text)}</figcaption>"
            f'<audio controls src="{embedded(sound, "audio/wav")}" aria-label="{title}"></audio>{image}</figure>\n')


def page(folder, language, options):
    words = WORDS[language]
    parts = [f"<header><h1>{words['title']}</h1>"
             f'<a href="{words["other"]}" lang="{words["other_language"]}">{words["other_name"]}</a></header>']
    if options.missing:
        parts.append(f'<p class="missing">{words["missing"][options.missing]}</p>')
    spoken = clip(folder, "english", words, options.english) + clip(folder, "persian", words, options.persian)
    if spoken:
        parts.append(f"<h2>{words['base']}</h2>\n<p>{words['base_text']}</p>\n<div class=\"clips\">\n{spoken}</div>")
    kind = "tuned" if (folder / "before.wav").exists() else "trained" if (folder / "after.wav").exists() else "untrained"
    cards = "".join(clip(folder, name, words, words[f"{name}_text"]) for name in ("before", "after", "reference"))
    parts.append(f"<h2>{words['new']}</h2>\n<p>{words[kind].format(steps=options.steps.translate(words['digits']))}</p>\n"
                 f'<blockquote lang="en" dir="ltr">{html.escape(options.sentence)}</blockquote>\n<div class="clips">\n{cards}</div>')
    pages = {"report": "voice/report.html", "diagnosis": "diagnosis.html", "prepare": "prepare.html"}
    links = [f'<li><a href="{path}">{words[name]}</a></li>' for name, path in pages.items()
             if (folder / path).exists() and (kind != "untrained" or name == "prepare")]
    parts.append(f"<h2>{words['pages']}</h2>\n<ul>{''.join(links)}</ul>")
    if kind != "untrained":
        command = f'build/myxtts synth --checkpoint {folder / "voice"} --text "Good morning." --out morning.wav'
        parts.append(f"<p>{words['further']}<br><code>{html.escape(command)}</code></p>")
    (folder / words["page"]).write_text(
        f'<!DOCTYPE html>\n<html lang="{language}" dir="{words["dir"]}">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{words["title"]}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name in ("english", "persian", "sentence", "steps"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--missing", default="", choices=["", *WORDS["en"]["missing"]])
    options = parser.parse_args()
    for language in WORDS:
        page(options.folder, language, options)


if __name__ == "__main__":
    main()
