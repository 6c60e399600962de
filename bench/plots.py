#!/usr/bin/env python3
"""Draws the plots of README and of the pages from bench/results/*.json, each for light and for dark pages, in English and
in Persian.

  bench/plots.py            writes docs/assets/*.svg
  bench/plots.py --check    changes nothing; exit 1 and name each plot that is stale

No figure is written here: each bar is a value of a result file."""
import html
import itertools
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
ASSETS = ROOT / "docs" / "assets"
THEMES = {"light": {"ink": "#1f2328", "faint": "#59636e", "ours": "#0969da", "theirs": "#afb8c1"},
          "dark": {"ink": "#f0f6fc", "faint": "#9198a1", "ours": "#4493f8", "theirs": "#656c76"}}
WIDTH, LABELS, VALUES, ROW = 760, 280, 110, 26
PERSIAN = {
    "From files to batches on the GPU, and a training step: MyXTTS and PyTorch on one NVIDIA H200":
        "از فایل تا بچ روی GPU، و گام آموزش: MyXTTS و PyTorch روی یک NVIDIA H200",
    "From WAV files to log-mel batches on the GPU, times real time (longer is better)":
        "از فایل WAV تا بچ‌های لاگ‌مل روی GPU، چند برابر زمان واقعی (بلندتر بهتر است)",
    "A training step of small, 16 clips × 800 frames, in ms (shorter is better)":
        "یک گام آموزش small، با ۱۶ کلیپ × ۸۰۰ فریم، به میلی‌ثانیه (کوتاه‌تر بهتر است)",
    "A training step of normal, 16 clips × 800 frames, in ms (shorter is better)":
        "یک گام آموزش normal، با ۱۶ کلیپ × ۸۰۰ فریم، به میلی‌ثانیه (کوتاه‌تر بهتر است)",
    "DataLoader, 16 workers + torchaudio": "DataLoader با ۱۶ worker و torchaudio",
    "torch.compile, reduce-overhead": "torch.compile با reduce-overhead",
    "The same training with everything on and with everything off, on one NVIDIA H200":
        "همان آموزش با همه چیز روشن و با همه چیز خاموش، روی یک NVIDIA H200",
    "GPU utilisation by the driver, median": "بهره‌وری GPU به گزارش درایور، میانه",
    "Seconds of audio trained per second": "ثانیه‌های صدای آموزش‌دیده در هر ثانیه",
    "MyXTTS, the defaults": "MyXTTS با پیش‌فرض‌ها", "slow path, dynamic shapes": "راه کند، شکل‌های پویا", "MyXTTS": "MyXTTS",
    "{:,.0f} ×": "{:,.0f} برابر", "{:.1f} ms": "{:.1f} میلی‌ثانیه", "{:.0%}": "{:.0%}", "{:,.0f} s": "{:,.0f} ثانیه"}
DIGITS = str.maketrans("0123456789,.%", "۰۱۲۳۴۵۶۷۸۹٬٫٪")


def result(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def speed():
    loader, step = result("loader_gpu"), result("step_changed_model")
    best = max(loader["rivals"].items(), key=lambda one: one[1]["figure"])
    pairs = [(size, step[size]["reduce_overhead"]) for size in ("small", "normal")]
    return "From files to batches on the GPU, and a training step: MyXTTS and PyTorch on one NVIDIA H200", [
        ("From WAV files to log-mel batches on the GPU, times real time (longer is better)", "{:,.0f} ×", [
            ("MyXTTS", loader["myxtts"]["separate files, every core"]["figure"]),
            ("DataLoader, 16 workers + torchaudio", best[1]["figure"])]),
        *((f"A training step of {size}, 16 clips × 800 frames, in ms (shorter is better)", "{:.1f} ms", [
            ("MyXTTS", pair["ours_in_that_run_ms"]), ("torch.compile, reduce-overhead", pair["ms"])]) for size, pair in pairs)]


def before_after():
    both = result("diagnosis/before_after")
    runs = [(name, both[when]["training"]) for name, when in (("MyXTTS, the defaults", "after"), ("slow path, dynamic shapes", "before"))]
    return "The same training with everything on and with everything off, on one NVIDIA H200", [
        ("GPU utilisation by the driver, median", "{:.0%}", [(name, run["gpu_utilisation_median"]) for name, run in runs]),
        ("Seconds of audio trained per second", "{:,.0f} s", [(name, run["audio_s_per_s_median"]) for name, run in runs])]


PLOTS = {"speed": speed, "before-after": before_after}


def draw(title, panels, theme, persian):
    """Panels of horizontal bars, each on its own scale; the first bar is ours. A Persian plot is the mirror image."""
    colours, out, y = THEMES[theme], [], 8
    translated = PERSIAN.__getitem__ if persian else str
    at = (lambda x, width=0: WIDTH - x - width) if persian else (lambda x, width=0: x)
    direction = ' direction="rtl"' if persian else ""
    for heading, form, bars in panels:
        y += 20
        out.append(f'<text x="{at(0)}" y="{y}" font-weight="600" fill="{colours["ink"]}">{html.escape(translated(heading))}</text>')
        y += 10
        room = (WIDTH - LABELS - VALUES) / max(value for _, value in bars)
        for number, (name, value) in enumerate(bars):
            colour, length, middle = colours["theirs" if number else "ours"], max(2, value * room), y + 17
            shown = translated(form).format(value)
            out += [f'<text x="{at(LABELS - 10)}" y="{middle}" text-anchor="end" fill="{colours["faint" if number else "ink"]}">{html.escape(translated(name))}</text>',
                    f'<rect x="{at(LABELS, length):.1f}" y="{y + 4}" width="{length:.1f}" height="{ROW - 8}" rx="2" fill="{colour}"/>',
                    f'<text x="{at(LABELS + length + 8):.1f}" y="{middle}" fill="{colours["ink"]}">{shown.translate(DIGITS) if persian else shown}</text>']
            y += ROW
        y += 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" font-family="system-ui,sans-serif" font-size="13"{direction}>'
    return "\n".join([head, f"<title>{html.escape(translated(title))}</title>", *out, "</svg>", ""])


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    stale = []
    for name, plot in PLOTS.items():
        for theme, persian in itertools.product(THEMES, (False, True)):
            path, drawn = ASSETS / f"{name}-{'fa-' if persian else ''}{theme}.svg", draw(*plot(), theme, persian)
            if not path.exists() or path.read_text(encoding="utf-8") != drawn:
                stale.append(path.relative_to(ROOT))
                if not sys.argv[1:]:
                    path.write_text(drawn, encoding="utf-8")
    for path in stale:
        print(f"{path} {'is stale; run bench/plots.py' if sys.argv[1:] else 'drawn'}")
    sys.exit(1 if stale and sys.argv[1:] else 0)


if __name__ == "__main__":
    main()
