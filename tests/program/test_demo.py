"""tools/demo, which `make demo` calls, with a tiny base voice and very few steps."""
import html.parser
import os
import re
import shutil
import subprocess
import wave

import pytest
from conftest import BINARY, HANG_S, ROOT

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


class Page(html.parser.HTMLParser):
    """The direction, the players and pictures, and the links of a page."""

    def __init__(self, file):
        super().__init__()
        self.dir, self.sources, self.links = "", [], []
        self.text = file.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "html":
            self.dir = values["dir"]
        self.sources += [values["src"]] if "src" in values else []
        self.links += [values["href"]] if "href" in values else []

    def sounds(self):
        return [source for source in self.sources if source.startswith("data:audio/wav;base64,")]

    def pictures(self):
        return [source for source in self.sources if source.startswith("data:image/png;base64,")]


def demo(folder, **environment):
    done = subprocess.run([ROOT / "tools" / "demo", "2", folder], env=os.environ | {"MYXTTS": str(BINARY)} | environment,
                          capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_pages(folder, sounds, links):
    for name, direction in (("index.html", "ltr"), ("index.fa.html", "rtl")):
        page = Page(folder / name)
        assert page.dir == direction
        assert len(page.sounds()) == len(page.pictures()) == sounds
        assert len(page.sources) == 2 * sounds, "nothing is loaded from elsewhere"
        assert set(page.links) == {*links, "index.fa.html" if name == "index.html" else "index.html"}
        assert all((folder / link).is_file() for link in page.links)


@pytest.fixture(scope="module")
def base(myxtts, tmp_path_factory):
    """A folder of voices whose `base` knows what the demo lets it say, in two languages."""
    folder = tmp_path_factory.mktemp("base")
    said = re.findall(r'^(?:english|persian|sentence)="(.*)"$', (ROOT / "tools" / "demo").read_text(encoding="utf-8"), re.MULTILINE)
    (folder / "texts.txt").write_text("".join(f"{'en' if text.isascii() else 'fa'}|{text}\n" for text in said), encoding="utf-8")
    myxtts("demo-data", folder / "corpus", "--clips", 24, "--speakers", 2, "--voice", "espeak-ng", "--texts", folder / "texts.txt")
    myxtts("train", "--train-data", folder / "corpus", "--checkpoint-dir", folder / "run", "--batch-size", 4, "--shape-buckets", 2,
           "--max-steps", 1)
    myxtts("export", "--format", "safetensors", "--checkpoint", folder / "run", "--out", folder / "voices" / "base")
    return folder / "voices"


@needs_espeak
def test_the_base_voice_speaks_and_learns_a_new_voice(base, tmp_path):
    printed = demo(tmp_path, MYXTTS_VOICES=str(base))
    assert "begins with the weights of" in printed
    for name in ("english", "persian", "before", "after", "reference"):
        with wave.open(str(tmp_path / f"{name}.wav")) as sound:
            assert sound.getnframes() > 0, name
    assert (tmp_path / "before.wav").read_bytes() != (tmp_path / "after.wav").read_bytes()
    assert "nobody knew who had lit it" not in (tmp_path / "speech" / "metadata.csv").read_text()
    check_pages(tmp_path, 5, {"voice/report.html", "diagnosis.html", "prepare.html"})
    for name in ("index.html", "index.fa.html", "voice", "voice/report.html", "diagnosis.html", "prepare.html"):
        assert f" {tmp_path / name}\n" in printed


def test_without_a_base_voice_one_is_trained_from_nothing(tmp_path):
    (tmp_path / "voices" / "base").mkdir(parents=True)
    (tmp_path / "voices" / "base" / "best.safetensors").write_bytes(b"nonsense")
    printed = demo(tmp_path / "demo", MYXTTS_VOICES=str(tmp_path / "voices"))
    wanted = "There is no base voice to use" if shutil.which("espeak-ng") else "espeak-ng is not installed"
    assert wanted in printed and "begins with the weights" not in printed
    check_pages(tmp_path / "demo", 2, {"voice/report.html", "diagnosis.html", "prepare.html"})
    assert wanted in Page(tmp_path / "demo" / "index.html").text


def test_without_libtorch_there_is_still_a_corpus_and_a_page(tmp_path):
    """A stand-in for such a build: its train has no options."""
    program = tmp_path / "myxtts"
    program.write_text(f'#!/bin/sh\n[ "$1" != train ] || exit 0\n[ "$1" != synth ] || exit 9\nexec {BINARY} "$@"\n')
    program.chmod(0o755)
    printed = demo(tmp_path / "demo", MYXTTS=str(program))
    assert "This build has no libtorch" in printed
    check_pages(tmp_path / "demo", 1, {"prepare.html"})
