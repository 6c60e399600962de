"""Every command of the documentation runs, as a reader would type it.

Each page is a transcript: its blocks run in their order in one folder that looks like a clone after `make demo`.
What the fence of a block names decides what is done with it:

    ```bash      every line runs, and must succeed
    ```console   lines that begin with "$ " run, and print every line below them; numbers, and what `...` stands for, may be
                 others. If `error: ...` is printed below one, it must fail with that very sentence
    ```python    all of a page together, as one script, with the Python package (skipped aloud where it is not built)
    ```yaml      must load: `config print --config`
    ```          nothing: output, a layout, a formula

A comment right before a fence (before its `<div dir="ltr">` in a Persian page) changes that:

    <!-- not run: the reason -->     the block is not run
    <!-- needs a GPU -->             the block is run only on a machine with one, which tools/gpu_check does
    <!-- varies: the reason -->      the printed lines, errors aside, are not compared: another machine prints others
    <!-- file: NAME -->              the block is written to the file NAME, whatever its language
    <!-- before: COMMAND -->         runs before the block: what a reader has and the folder below has not

In the folder lie build/demo/corpus (120 clips), build/demo/voice and my-voice (a run of three speakers with its vocoder),
my-corpus (twelve recordings in another format, with a metadata.csv), clip.wav, clip-1.wav and clip-2.wav. Everything of
the repository is there too. `build/myxtts` is the real program; only the length of a training is changed: `train` gets tiny
sizes and a few steps whatever is typed, and the exit status 1 of `diagnose`, a finding, counts as success. `make demo` is
`tools/demo` with few steps. A Persian page runs nothing: its commands must be those of the English one."""
import os
import re
import shutil
import subprocess
import sys
import wave

import pytest
from conftest import BINARY, HANG_S, ROOT
from pages import PAGES, PERSIAN, blocks, read

RUN = {"bash", "console", "python", "yaml"}
PACKAGE = ROOT / "build" / "python_package"
HAS_GPU = shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0

PROGRAM = """#!/usr/bin/env bash
# The real program; a training is short whatever is asked for.
case "$1" in
  diagnose) {binary} "$@" || [ $? = 1 ]; exit ;;
  train) ;;
  *) exec {binary} "$@" ;;
esac
[[ "$*" != *--help* ]] || exec {binary} "$@"
short=(--max-steps 5 --batch-size 4 --shape-buckets 2) size=(--model-size tiny)
[[ "$*" != *"--target vocoder"* && "$*" != *vocoder.yaml* ]] || short=(--max-steps 1 --batch-size 2)
given=()
while [ $# -gt 0 ]; do
  case "$1" in
    --max-steps | --epochs | --batch-size | --shape-buckets) shift ;;
    --model-size) size=() given+=(--model-size tiny); shift ;;
    --from | --config) size=() given+=("$1") ;;
    *) given+=("$1") ;;
  esac
  shift
done
exec {binary} "${{given[@]}}" "${{short[@]}}" "${{size[@]}}"
"""
MAKE = """#!/usr/bin/env bash
# What is built is built; the demo is short.
for target in "$@"; do
  case "$target" in
    build | JOBS=*) ;;
    demo) MYXTTS=build/myxtts tools/demo 2 ;;
    *) echo "make $target is not run by the tests of the pages" >&2; exit 1 ;;
  esac
done
"""


SENTENCES = """The quick brown fox jumps over the lazy dog.|Good morning, how are you today?|Vision and pleasure are rare things.
She sells sea shells by the sea shore.|Which witch thought of this ring?|A good cook could cook good food.|Jack and George judge the huge bridge.
They gave us five thick books.|Young Hugh used a yellow yo-yo.|My boy saw our house there, near here.|Few people ever measure treasure.
One, two, three, four, five!""".replace("\n", "|").split("|")


def recordings(folder, corpus):
    """A corpus as a user brings it: texts with every sound of English, 44.1 kHz stereo of 24 bits."""
    (folder / "wavs").mkdir(parents=True)
    for number in range(1, len(SENTENCES) + 1):
        with wave.open(str(corpus / "wavs" / f"demo-{number:05}.wav")) as clip:
            samples = clip.readframes(clip.getnframes())
        with wave.open(str(folder / "wavs" / f"clip-{number:04}.wav"), "wb") as clip:
            clip.setnchannels(2), clip.setsampwidth(3), clip.setframerate(44100)
            halves = (b"\0" + samples[i : i + 2] for i in range(0, len(samples), 2))
            clip.writeframes(b"".join(4 * half for half in halves))  # each sample for both ears, twice
    rows = (f"clip-{number:04}|{text}\n" for number, text in enumerate(SENTENCES, 1))
    (folder / "metadata.csv").write_text("".join(rows), encoding="utf-8")


@pytest.fixture(scope="session")
def clone(myxtts, voice, tmp_path_factory):
    """What a page finds; each gets a copy."""
    folder = tmp_path_factory.mktemp("clone")
    demo = folder / "build" / "demo"
    myxtts("demo-data", demo / "corpus", "--clips", 120)
    for name in (demo / "voice", folder / "my-voice"):
        shutil.copytree(voice, name)
    recordings(folder / "my-corpus", demo / "corpus")
    for number, name in enumerate(("clip", "clip-1", "clip-2"), 1):
        shutil.copy(demo / "corpus" / "wavs" / f"demo-0000{number}.wav", folder / f"{name}.wav")
    (folder / "bin").mkdir()
    for path, text in ((folder / "build" / "myxtts", PROGRAM), (folder / "bin" / "make", MAKE)):
        path.write_text(text.format(binary=BINARY) if path.name == "myxtts" else text)
        path.chmod(0o755)
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(sys.executable)
    return folder


def link_or_copy(source, target):
    """Weights are never written in place: a link will do, and gigabytes stay unwritten."""
    (os.link if source.endswith(".safetensors") else shutil.copy2)(source, target)


@pytest.fixture
def place(clone, tmp_path):
    """A fresh copy of the clone, with the repository's own files beside it."""
    shutil.copytree(clone, tmp_path, symlinks=True, dirs_exist_ok=True, copy_function=link_or_copy)
    for path in ROOT.iterdir():
        if not (tmp_path / path.name).exists() and path.name != ".git":
            (tmp_path / path.name).symlink_to(path)
    yield tmp_path
    shutil.rmtree(tmp_path)


def environment(place):
    return {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "COLUMNS": "120",
            "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}", "MYXTTS_VOICES": str(place / "voices")}


def run(block, place, command, shell=("bash", "-euo", "pipefail", "-c"), status=0, seconds=HANG_S):
    done = subprocess.run([*shell, command], cwd=place, env=environment(place), capture_output=True, text=True, timeout=seconds)
    failed = done.returncode not in (0, 141)  # 141: its reader, such as head, has had enough
    assert failed == (status != 0), f"{block}: exit {done.returncode} of\n{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done


def commands(block):
    """(command, the lines that it is to print) of a console block. A command continues after a line that ends with \\."""
    entry = r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n?)*)"
    for found in re.finditer(entry, block.text, re.MULTILINE):
        yield found[1], [line for line in found[2].splitlines() if line.strip()]


def like(line):
    """What a printed line must match: any number for a number, anything for `...`, any hash, bar and width of a column."""
    parts = {"...": ".*", "#": r"\d[\d.,]*", "@": "[0-9a-f]{16}", "█": "█+", " ": r"\s+"}
    marked = re.sub(r"\d[\d.,]*", "#", re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{16}\b", "@", line.strip().replace("#", "...")))
    tokens = re.split(r"(\.\.\.|#|@|█+|\s+)", marked)
    return re.compile("".join(parts.get(one, parts.get(one[:1]) if one[:1] in "█ " and one else None) or re.escape(one) for one in tokens))


def run_console(block, place):
    for command, shown in commands(block):
        error = next((line for line in shown if line.startswith("error: ")), None)
        if error:
            command = command.replace("build/myxtts", str(BINARY))  # the training that it refuses is as long as it says
        done = run(block, place, command, status=1 if error else 0)
        assert not error or error in done.stderr, f"{block}: {command}\nprints {done.stderr}\nand not {error}"
        printed = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
        for line in [] if block.said("varies") is not None else shown:
            known = line == error or any(like(line).fullmatch(one) for one in printed)
            assert known, f"{block}: {command}\nprints {done.stdout}{done.stderr}\nand not {line}"


def run_bash(block, place):
    run(block, place, block.text)


def run_yaml(block, place):
    (place / "block.yaml").write_text(block.text, encoding="utf-8")
    run(block, place, "build/myxtts config print --config block.yaml")


def run_python(page, place):
    whole = "\n".join(block.text for block in blocks(page) if block.language == "python" and is_run(block) and not block.said("file"))
    if "import myxtts" in whole and subprocess.run([sys.executable, "-c", "import myxtts"], env=environment(place), capture_output=True).returncode:
        pytest.skip("the Python package is not built; all else of the page has run")
    if whole:
        run(page, place, whole, shell=(sys.executable, "-c"))


def is_run(block):
    return block.said("not run") is None and (HAS_GPU or block.said("needs a GPU") is None)


def run_block(block, place):
    if block.said("before"):
        run(block, place, block.said("before"))
    if block.said("file"):
        (place / block.said("file")).parent.mkdir(parents=True, exist_ok=True)
        (place / block.said("file")).write_text(block.text, encoding="utf-8")
    elif block.language != "python":
        {"bash": run_bash, "console": run_console, "yaml": run_yaml}[block.language](block, place)


def to_run(page):
    return [block for block in blocks(page) if block.language in RUN or block.said("file")]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in PERSIAN and to_run(page)], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_commands_of_a_page_run_in_their_order(page, place):
    for block in to_run(page):
        if is_run(block):
            run_block(block, place)
    run_python(page, place)


def typed(page):
    """What a page types, without what may differ between languages: quoted texts, comments and output."""
    for block in to_run(page):
        lines = [command for command, _ in commands(block)] if block.language == "console" else block.text.splitlines()
        for line in lines:
            line = re.sub(r"\s*(^|\s)#.*|\"[^\"]*\"|'[^']*'", "", line).strip()
            if line and block.language in ("bash", "console"):
                yield line


@pytest.mark.parametrize("page", PERSIAN, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_persian_page_types_and_shows_what_the_english_one_does(page):
    english = page.parent.parent / "en" / page.name if page.parent.name == "fa" else page.with_name(page.name.replace(".fa", ""))
    assert list(typed(page)) == list(typed(english))
    shown = [[block.text for block in blocks(one) if block.language == "console"] for one in (page, english)]
    assert shown[0] == shown[1], "what is printed is the same, too"


def test_a_block_without_a_language_holds_no_command():
    """Else it would be left out of the tests by forgetting a word."""
    for page in PAGES:
        for block in blocks(page):
            first = block.text.lstrip().split("\n")[0]
            if not block.language and block.said("not run") is None:
                assert not re.match(r"(\$ )?(build/myxtts|myxtts|make|tools/|python3?|pip|curl|git|cmake|sudo|torchrun) ", first), f"{block}: {first}"


@pytest.mark.parametrize("text, must_say", [
    ("```bash\nbuild/myxtts prepare build/demo/corpus --bacth-size 8\n```\n", "--bacth-size"),
    ("```console\n$ build/myxtts speak\nerror: [command line] something else\n```\n", "and not error: [command line] something else"),
    ("```console\n$ build/myxtts config print | head -1\nDATA:\n```\n", "and not DATA:"),
    ("```console\n$ echo 3 clips of 4\n12 clips\n```\n", "and not 12 clips"),
    ("```yaml\ndata: {bacth_size: 3}\n```\n", "did you mean"),
])
def test_a_page_with_a_wrong_command_fails(place, text, must_say):
    page = ROOT / "docs" / "en" / "wrong.md"  # never written: only its name is told
    with pytest.raises(AssertionError, match=re.escape(must_say)):
        run_block(blocks(page, text)[0], place)
