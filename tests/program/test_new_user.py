"""Someone who has only the README: its blocks, in a fresh clone, with the real program and a folder of their own.

Beyond what the README says there is only `--max-steps 2`, where it says `--max-steps 1000`, and tiny sizes of batches where
the corpus asks for them. Unlike test_docs_commands.py nothing stands between the reader and the program."""
import os
import shlex
import subprocess

import pytest
from conftest import BINARY, HANG_S, ROOT
from pages import blocks, read


@pytest.fixture
def fresh(tmp_path):
    """A clone, with the program that `make build` would have built."""
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, tmp_path / "myxtts"], check=True)
    (tmp_path / "myxtts" / "build").mkdir()
    (tmp_path / "myxtts" / "build" / "myxtts").symlink_to(BINARY)
    return tmp_path / "myxtts"


def typed(command):
    """The line of the README that begins so; without its options after the corpus."""
    lines = [line for block in blocks(ROOT / "README.md") if block.language == "bash" for line in block.text.splitlines()]
    return next(line for line in lines if line.startswith(command) and "build/demo" not in line)


def run(folder, line, *more, statuses=(0,)):
    done = subprocess.run([*shlex.split(line), *more], cwd=folder, capture_output=True, text=True, timeout=HANG_S, env={**os.environ, "COLUMNS": "120"})
    assert done.returncode in statuses, f"{line} {more}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


@pytest.mark.parametrize("clips", [60, 12])
def test_the_readme_is_enough_for_a_folder_of_ones_own(myxtts, fresh, tmp_path, clips):
    myxtts("demo-data", fresh / "my-corpus", "--clips", clips, "--seed", clips)
    rows = (fresh / "my-corpus" / "metadata.csv").read_text().splitlines()  # real speech has every sound of the README's sentence
    rows = [row.split("|")[0] + "|Good morning." if i % 4 == 0 else row for i, row in enumerate(rows)]
    (fresh / "my-corpus" / "metadata.csv").write_text("\n".join(rows) + "\n")
    train, few = typed("build/myxtts train"), ["--max-steps", "2"]
    assert "--max-steps 1000" in read(ROOT / "README.md")
    run(fresh, typed("build/myxtts prepare"))
    if clips < 20:
        refused = run(fresh, train, *few, statuses=(2,))
        assert refused.stderr.strip().endswith("too few for a batch of 16; give --batch-size 4")
        assert "`--batch-size 4`" in read(ROOT / "README.md")
        few += ["--batch-size", "4"]
    run(fresh, train, *few)
    run(fresh, typed("build/myxtts synth"))
    assert (fresh / "morning.wav").read_bytes()[:4] == b"RIFF"
    diagnoses = ["bottleneck", "retracing", "report"]
    for name in diagnoses:
        found = run(fresh, typed(f"build/myxtts diagnose {name}"), statuses=(0, 1))
        assert found.stdout
    for page in ("prepare.html", "my-voice/report.html", "bottleneck.html", "diagnosis.html"):
        assert "<html" in (fresh / page).read_text(encoding="utf-8"), page
