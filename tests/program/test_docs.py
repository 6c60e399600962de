"""The documentation holds together: links, headings, names of the program, figures, and the direction of Persian code.
Its commands are run by test_docs_commands.py."""
import bisect
import functools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BINARY, ROOT
from pages import FENCE, PAGES, PERSIAN, TAG, anchors, blocks, headings, links, prose, read, slug

ENGLISH = sorted((ROOT / "docs" / "en").glob("*.md"))
PAIRS = [(page, ROOT / "docs" / "fa" / page.name) for page in ENGLISH] + [(ROOT / "README.md", ROOT / "README.fa.md")]
READMES = [ROOT / "README.md", ROOT / "README.fa.md"]
WITH_FIGURES = [*READMES, ROOT / "docs" / "en" / "benchmarks.md", ROOT / "docs" / "fa" / "benchmarks.md"]
# "3.8 %", "11.5 ms", "966,048 × real time", "14.289 s", in both scripts: what only a measurement can say.
FIGURE = re.compile(r"[\d۰-۹][\d۰-۹.,٫٬]*\s*(%|٪|×|ms\b|s of|میلی‌ثانیه|برابر)")


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_link_is_dead(page):
    dead = []
    for line, target in links(page):
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            dead.append(f"line {line}: {target}")
    assert not dead


def test_every_english_page_has_a_persian_one_and_none_is_left_over():
    assert {page.name for page in ENGLISH} == {page.name for page in (ROOT / "docs" / "fa").glob("*.md")}


@pytest.mark.parametrize("english, persian", PAIRS, ids=lambda page: name(page))
def test_both_languages_have_the_same_headings(english, persian):
    levels = [[level for level, _ in headings(page)] for page in (english, persian)]
    assert levels[0] == levels[1]
    slugs = {slug(text) for level, text in headings(english) if level > 1}
    assert slugs - anchors(persian) == set(), "a link to a heading must work in both languages"


@pytest.mark.parametrize("english, persian", PAIRS, ids=lambda page: name(page))
def test_both_languages_link_to_each_other(english, persian):
    for page, other in ((english, persian), (persian, english)):
        assert other.resolve() in [(page.parent / target).resolve() for _, target in links(page)], name(page)


def test_the_program_its_changelog_and_its_citation_name_one_version():
    printed = subprocess.run([BINARY, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    assert re.search(r"^## (\S+)", read(ROOT / "CHANGELOG.md"), re.MULTILINE)[1] == printed
    assert re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == printed


@functools.cache
def commands():
    """Every command of the program, down to the last level, with its help."""
    return list(helps())


def helps(path=()):
    text = subprocess.run([BINARY, *path, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"^(?:Commands|Subcommands):\n((?:[ ].*\n?)+)", text, re.MULTILINE | re.IGNORECASE)
    inner = re.findall(r"^  ([a-z][a-z-]*)", listed[1], re.MULTILINE) if listed else []
    yield " ".join(path), text
    for word in inner:
        yield from helps((*path, word))


FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*\w")
COMMON = {"--help", "--version", "--log-level", "--no-progress", "--config", "--preset"}  # in "Common to all"
ELSEWHERE = {"speakers add": ("commands.md", "speakers"), "diagnose bottleneck": ("diagnosis.md", "bottleneck"), "diagnose report": ("diagnosis.md", "report"),
             "diagnose retracing": ("diagnosis.md", "retracing"), "diagnose watch": ("diagnosis.md", "watching-a-gpu")}
# Flags of other programs, and wrong ones that a page shows being refused.
NOT_OURS = set("""--test-dir --leave-out --svg --gtest_filter --kill-s --size --twins --only --sort --matcha-acoustic-model --matcha-vocoder
 --matcha-tokens --matcha-lexicon --matcha-noise-scale --num-threads --output-filename --delete --check --gpus --no-python --nproc-per-node
 --nnodes --rdzv-backend --rdzv-endpoint --max-restarts --nodes --ntasks-per-node --gpus-per-node --cpus-per-task --time --signal --requeue
 --voices --logdir --bacth-size data.bacth_size data.size""".split())


def section_of(page, anchor):
    """The part of a page under the heading with this anchor, up to the next one of its level."""
    text = read(page)
    found = list(re.finditer(r'^((?:<a id="[^"]*"></a>\n\n)*)## +(.*)$', text, re.MULTILINE))
    for one, following in zip(found, [*found[1:], None]):
        if f'"{anchor}"' in one[1] or slug(TAG.sub("", one[2]).replace("`", "")) == anchor:
            return text[one.start() : following and following.start()]
    raise AssertionError(f"{name(page)} has no section {anchor}")


@functools.cache
def keys_and_flags():
    text = subprocess.run([BINARY, "config", "keys"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\w+\.\w+", text, re.MULTILINE)), set(FLAG.findall(text))


@pytest.mark.parametrize("language", ["en", "fa"])
def test_every_flag_is_documented_in_the_section_of_its_command(language):
    """Those of settings are, unless the section has them, in the reference of settings, which is generated."""
    folder = ROOT / "docs" / language
    _, of_settings = keys_and_flags()
    listed = [(command, shown) for command, shown in commands() if command and not re.search("^(Subc|C)ommands:", shown, re.MULTILINE | re.IGNORECASE)]
    assert len(listed) > 15
    for command, shown in listed:
        file, anchor = ELSEWHERE.get(command, ("commands.md", command.replace(" ", "-")))
        text = section_of(folder / file, anchor)
        flags = set(FLAG.findall(shown)) - COMMON
        named = set(FLAG.findall(text))
        missing = {flag for flag in flags - named if flag not in of_settings}
        assert missing == set(), f"{file}#{anchor} lacks {missing}"
        rows = {flag for line in re.findall(r"^\|([^|]*)\|", text, re.MULTILINE) for flag in FLAG.findall(line)}
        known = set().union(*(FLAG.findall(other) for one, other in commands() if ELSEWHERE.get(one, ("", one.replace(" ", "-")))[1] == anchor))
        assert rows - known == set(), f"{file}#{anchor} has flags that the command has not"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_flag_and_key_of_a_page_exists(page):
    keys, _ = keys_and_flags()
    flags = set().union(*(FLAG.findall(shown) for _, shown in commands()))
    text = re.sub(r"<!--|-->", "", read(page))
    named = set(FLAG.findall(text)) | set(re.findall(r"(?<![\w./-])(?:data|model|training)\.(?!md\b|onnx\b|json\b)[a-z]\w*", text))
    assert named - flags - keys - NOT_OURS == set()


@pytest.mark.parametrize("language", ["en", "fa"])
def test_every_setting_is_documented(language):
    text = read(ROOT / "docs" / language / "configuration.md")
    keys = subprocess.run([BINARY, "config", "keys"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^\w+\.(\w+)", keys, re.MULTILINE)
    assert len(names) > 60
    assert [key for key in names if f"`{key}`" not in text] == []


def sections(page):
    """(heading, text) of each part of a page between headings of the second level."""
    parts = re.split(r"^## +(.*)$", re.sub(r'<a id="[^"]*"></a>', "", prose(page)), flags=re.MULTILINE)
    return list(zip(["", *parts[1::2]], parts[0::2]))


@pytest.mark.parametrize("page", WITH_FIGURES, ids=name)
def test_a_section_with_figures_names_the_run_that_they_are_from(page):
    runs = 0
    for heading, text in sections(page):
        files = [target for target in re.findall(r"\]\(([^)]+\.json)\)", text) if "bench/results/" in target]
        assert files or not FIGURE.search(TAG.sub("", text)), f"{heading}: no file of results"
        for target in files:
            text = read(page.parent / target)
            assert all(f'"{key}"' in text for key in ("date", "command")), target
        runs += len(files)
    assert runs >= 4


NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?!\w|\.\d)")
DIGITS = str.maketrans("۰۱۲۳۴۵۶۷۸۹٫٬", "0123456789.,")
SHOWN = [*READMES, *ENGLISH, *(ROOT / "docs" / "fa" / page.name for page in ENGLISH)]


def tables(text):
    """(section, comment before it, rows) of each table; code is left out, and what is not shown of a link."""
    section, comment, rows = 0, "", []
    for line in [*FENCE.sub("", text).splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows:
            yield section, comment, rows
            comment, rows = "", []
        section += line.startswith("## ")
        if line.strip():
            comment = line if line.startswith("<!--") else ""


def figures(row):
    """The numbers of a row as they are written, without thousands separators, and whether each is a percentage."""
    row = TAG.sub("", re.sub(r"(`{1,2}).*?\1|\]\([^)]*\)|\[[\w.]+\.json", "", row)).translate(DIGITS)
    return [(found[0].replace(",", ""), bool(re.match(r" ?[%٪]", row[found.end() :]))) for found in NUMBER.finditer(row)]


def measured(files):
    """Every number of result files, those in keys and sentences too: {whether percentages: in every unit that a page may use}."""
    found = set()
    for path in files:
        text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", read(path))
        found |= {abs(float(one)) for one in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]\d+)?", text)}
    return {percent: sorted({value * scale for value in found for scale in scales})
            for percent, scales in ((True, (1, 100)), (False, (1, 1e3, 1e-3, 1e-6)))}


def stands(number, values):
    """Whether a number is one of sorted values, rounded or cut to its digits."""
    whole, _, digits = number.partition(".")
    unit = 10.0 ** (-len(digits) if digits else len(whole) - len(whole.rstrip("0")) if len(whole) > 3 else 0)
    at = bisect.bisect_left(values, float(number) - 0.501 * unit)
    return at < len(values) and values[at] < float(number) + 0.999 * unit


def unmeasured(page, text):
    """Numbers of tables that stand in no result file which their section links; a ratio needs both of its parts in the table.
    Right before a table `<!-- not measured: REASON -->` exempts all of it, `<!-- not measured 20 40: REASON -->` these."""
    parts = re.split(r"^## ", FENCE.sub("", text), flags=re.MULTILINE)
    wrong = []
    for section, comment, rows in tables(text):
        files = {page.parent / one for one in re.findall(r"\]\(([^)]+\.json)\)", parts[section]) if "bench/results/" in one}
        exempt = re.match(r"<!-- not measured([\d., ]*): \w", comment)
        if not files or (exempt and not exempt[1]):
            continue
        values = measured(files)
        own = [float(one) for row in rows for one, percent in figures(row) if stands(one, values[percent])]
        ratios = sorted(a / b for a in own for b in own if b)
        for row in rows:
            wrong += [f"{one} in {row[:90]}" for one, percent in figures(row) if not stands(one, values[percent])
                      and not (exempt and one in exempt[1].split()) and not (re.search(r"×|برابر", row) and stands(one, ratios))]
    return wrong


@pytest.mark.parametrize("page", SHOWN, ids=name)
def test_every_number_of_a_table_stands_in_a_result_file_of_its_section(page):
    assert unmeasured(page, read(page)) == []


@pytest.mark.parametrize("shown, found", [
    ("| ours | 13.5 ms |", []), ("| ours | ۱۳٫۵ |", []), ("| ours | 13.49 | 19.35 | 1.43 × |", []),
    ("| ours | 12.3 ms |", ["12.3"]), ("| ours | 13.49 | 19.35 | 1.62 × |", ["1.62"]), ("| `--steps 987654` | 71,459,489 |", []),
])
def test_a_number_that_nothing_measured_is_found(shown, found):
    text = f"## Step\n\n[run](../../bench/results/step_changed_model.json)\n\n{shown}\n"
    page = ROOT / "docs" / "en" / "benchmarks.md"
    assert [one.split()[0] for one in unmeasured(page, text)] == found
    assert unmeasured(page, text.replace("\n\n|", "\n\n<!-- not measured: an example -->\n|")) == []


# A number with a unit, or the first of two: "3.1 ms", "170 to 200 MB", in both languages.
QUANTITY = re.compile(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?)(?=(?:\s?(?:-|to|and|or|تا|و|یا)\s?(?:\d[\d,]*(?:\.\d+)?))?\s*"
                      r"([%٪]|×|ms\b|s\b|min(?:utes?)?\b|seconds?\b|hours?\b|[KMG]i?B\b|steps\b|برابر|میلی‌ثانیه|ثانیه|دقیقه|ساعت|گام|(?:کیلو|مگا|گیگا)بایت))")
# What a page's sentences say that is no measurement: limits, defaults, sizes of formats, advice, examples.
NOT_MEASURED = {
    "choosing-a-mode.md": "7", "diagnosis.md": "20 99 30", "formats.md": "1 256", "getting-started.md": "350", "installation.md": "0.14 3", "loader.md": "0 10 100",
    "scaling.md": "600 20 50 3 300 0.1 1 1.25 170 1.2", "server.md": "30 6", "speakers.md": "3 8000 4000 1000", "training.md": "20000 8000 12 24 141 60 0.35 0.15",
    "troubleshooting.md": "2 40", "tuning.md": "99", "vocoder.md": "0.7 10000 100000", "your-own-voice.md": "2 12"}


def unmeasured_quantities(page, text):
    """Those of sentences that stand in no result file which their section links."""
    wrong = []
    for section in re.split(r"^## ", FENCE.sub("", text), flags=re.MULTILINE):
        values = measured({page.parent / one for one in re.findall(r"\]\(([^)]+\.json)\)", section) if "bench/results/" in one})
        sentences = re.sub(r"<!--.*?-->|<picture>.*?</picture>", "", section, flags=re.DOTALL)
        sentences = "\n".join(line for line in sentences.splitlines() if not line.startswith("|"))
        sentences = TAG.sub("", re.sub(r"(`{1,2}).*?\1|\]\([^)]*\)|\[[\w.]+\.json", "", sentences)).translate(DIGITS)
        for found in QUANTITY.finditer(sentences):
            number = found[1].replace(",", "")
            if number not in NOT_MEASURED.get(page.name, "").split() and not stands(number, values[found[2] in "%٪"]):
                wrong.append(f"{number} {found[2]} in {sentences[max(0, found.start() - 60):found.end() + 20]!r}")
    return wrong


@pytest.mark.parametrize("page", [page for page in SHOWN if page.name not in ("commands.md", "configuration.md")], ids=name)
def test_every_quantity_of_a_sentence_stands_in_a_result_file_of_its_section(page):
    assert unmeasured_quantities(page, read(page)) == []


@pytest.mark.parametrize("shown, found", [
    ("It takes 13.5 ms.", []), ("It takes ۱۳٫۵ میلی‌ثانیه.", []), ("It takes 12.3 ms.", ["12.3"]), ("It takes 12.3 to 13.5 ms.", ["12.3"]),
    ("It was ۹۸۷٬۶۵۴ برابر.", ["987654"]), ("`--sleep 987654 ms` and 987654 clips", []),
])
def test_a_quantity_that_nothing_measured_is_found(shown, found):
    page = ROOT / "docs" / "en" / "benchmarks.md"
    text = f"## Step\n\n[run](../../bench/results/step_changed_model.json)\n\n{shown}\n"
    assert [one.split()[0] for one in unmeasured_quantities(page, text)] == found


def visible(page):
    text = re.sub(r"<!--.*?-->", "", read(page), flags=re.DOTALL)
    return TAG.sub("", re.sub(r"\]\([^)]*\)", "]", text))


@pytest.mark.parametrize("page", READMES, ids=name)
def test_the_readme_is_short(page):
    assert len(visible(page).split()) <= 900
    assert len(re.findall(r"[\d۰-۹][\d۰-۹.,٫٬]*", visible(page))) <= 40


@pytest.mark.parametrize("script", ["bench/plots.py", "tools/draw_charts"])
def test_no_plot_is_stale(script):
    done = subprocess.run([sys.executable, ROOT / script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pictures_are_small_and_each_is_shown():
    shown = {Path(target).name for page in PAGES for _, target in links(page)}
    for path in (ROOT / "docs" / "assets").glob("*.[ps][nv]g"):
        assert path.stat().st_size < 100_000 and path.name in shown, path.name


def test_the_verdict_of_watch_is_that_of_its_file():
    saved = json.loads(read(ROOT / "bench" / "results" / "diagnosis" / "watch.json"))
    use, held = saved["utilisation"], saved["throttled"]["power limit"]
    end = f"""{saved["sentence"]}
  {use["p5"]:.0f} % at the 5th percentile, {use["p50"]:.0f} % at the 50th, {use["p95"]:.0f} % at the 95th, {use["max"]:.0f} % at most; {saved["samples"]} samples
  judged by SM activity from sample to sample
  clocks were held down {100 * held:.0f} % of the time: power limit
"""
    assert all(end in read(ROOT / "docs" / language / "diagnosis.md") for language in ("en", "fa"))


def test_a_plot_follows_its_results(tmp_path):
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("*.wav"))
    shutil.copytree(ROOT / "docs" / "assets", tmp_path / "docs" / "assets")
    step = tmp_path / "bench" / "results" / "step_changed_model.json"
    step.write_text(step.read_text(encoding="utf-8").replace('"ours_in_that_run_ms": 13.49', '"ours_in_that_run_ms": 12.25'), encoding="utf-8")
    plots = [sys.executable, tmp_path / "bench" / "plots.py"]
    done = subprocess.run([*plots, "--check"], capture_output=True, text=True)
    assert done.returncode == 1 and "speed-light.svg is stale" in done.stdout and "before-after" not in done.stdout
    assert subprocess.run(plots).returncode == 0
    assert "12.2 ms" in read(tmp_path / "docs" / "assets" / "speed-dark.svg")


@pytest.mark.parametrize("page", PERSIAN, ids=name)
def test_all_code_of_a_persian_page_runs_left_to_right(page):
    text = read(page)
    assert text.startswith('<div dir="rtl">\n') and text.endswith("</div>\n")
    for block in blocks(page):
        before = text.splitlines()[: block.line - 1]
        assert [line.strip() for line in before[-2:]] == ['<div dir="ltr">', ""], block
    for line in prose(page).splitlines():
        for found in re.finditer(r"(?<!`)(`{1,2})(?!`)[^\n]+?(?<!`)\1(?!`)", line):
            assert line[: found.start()].endswith('<span dir="ltr">') and line[found.end() :].startswith("</span>"), found[0]


def test_english_is_spelt_as_dictionaries_have_it():
    pytest.importorskip("codespell_lib", reason="codespell is not installed: pip install codespell")
    pages = [name(page) for page in PAGES if page not in PERSIAN]
    done = subprocess.run([sys.executable, "-m", "codespell_lib", *pages], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_site_holds_every_page_in_both_languages(tmp_path):
    """The build is strict: a link or an anchor that it does not know ends it."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "make_site", tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for english, persian in PAIRS:
        for language, page, direction in (("en", english, "ltr"), ("fa", persian, "rtl")):
            made = read(tmp_path / "site" / language / ("index.html" if "README" in page.name else f"{page.stem}.html"))
            assert f'lang="{language}"' in made and f'dir="{direction}"' in made
    index = json.loads(read(tmp_path / "site" / "fa" / "search" / "search_index.json"))
    assert any("نخستین" in found["title"] for found in index["docs"])


@pytest.mark.parametrize("broken, test", [
    ("[x](nowhere.md)", test_no_link_is_dead), ("[x](#nowhere)", test_no_link_is_dead),
])
def test_a_dead_link_is_found(tmp_path, broken, test):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n[here](#page) {broken}\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nowhere"):
        test(page)
