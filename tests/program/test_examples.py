"""The scripts of examples/ run as they are, on one small corpus, with two steps each."""
import os
import shutil
import subprocess
import sys

import pytest
from conftest import BINARY, HANG_S, ROOT

SCRIPTS = sorted(path for path in (ROOT / "examples").glob("*.sh") if path.name != "common.sh")
PYTHON = sorted((ROOT / "examples" / "python").glob("*.py"))
PACKAGE = ROOT / "build" / "python_package"
GPUS = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ") if shutil.which("nvidia-smi") else 0


def needed_gpus(script):
    found = [line.split()[1] for line in script.read_text().splitlines() if line.startswith("need_gpus ")]
    return int(found[0]) if found else 0


@pytest.fixture(scope="session")
def small(myxtts, tmp_path_factory):
    """A corpus, and a smaller one to validate on where production.sh looks for it."""
    folder = tmp_path_factory.mktemp("examples")
    for name, clips, seed in (("corpus", 24, 1), ("corpus-validation", 4, 2)):
        myxtts("demo-data", folder / name, "--clips", clips, "--seed", seed)
    return folder / "corpus"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs_or_says_which_gpus_it_needs(script, small, tmp_path):
    environment = {**os.environ, "MYXTTS": str(BINARY), "CORPUS": str(small), "RUNS": str(tmp_path), "STEPS": "2"}
    done = subprocess.run([script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    if needed_gpus(script) > GPUS:
        assert done.stdout == f"skipped: it needs {needed_gpus(script)} GPUs, and this machine has {GPUS}\n"
        assert not any(tmp_path.iterdir())
        return
    assert f"$ {BINARY} " in done.stdout and any(tmp_path.iterdir())
    if '"$MYXTTS" train' in script.read_text():
        assert "done: 2 of 2 steps" in done.stdout
    if script.stem == "own_voice":
        assert (tmp_path / "spoken.wav").read_bytes()[:4] == b"RIFF" and (tmp_path / "prepare.html").exists()


def test_an_example_without_the_program_says_how_to_build_it(tmp_path):
    done = subprocess.run([ROOT / "examples" / "default.sh"], env={**os.environ, "MYXTTS": str(tmp_path / "none")}, capture_output=True, text=True)
    assert done.returncode == 2 and "make build" in done.stderr


def test_every_example_has_a_row_in_both_overviews():
    for page in ("README.md", "README.fa.md"):
        text = (ROOT / "examples" / page).read_text(encoding="utf-8")
        for path in [*SCRIPTS, *PYTHON]:
            assert f"({path.relative_to(ROOT / 'examples')})" in text, (page, path.name)


@pytest.mark.parametrize("script", PYTHON, ids=lambda path: path.stem)
def test_a_python_example_runs(script, small):
    if not (PACKAGE / "myxtts").is_dir():
        pytest.skip("the Python package is not built")
    pytest.importorskip({"lightning_trainer": "lightning", "accelerate_loop": "accelerate"}.get(script.stem, "torch"))
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    few = {"train_step": ["--device", "cpu", "--epochs", 1, "--batch-size", 4], "diagnose_dataloader": ["--batches", 8]}
    few = few.get(script.stem, ["--batch-size", 4])
    done = subprocess.run([sys.executable, script, small, *map(str, few)], env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr
