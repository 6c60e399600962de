"""`bench step`: one shape, and lengths that vary in few of them; and bench/step_rivals.py, which races it."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BINARY

LITTLE = ("bench", "step", "--model-size", "tiny", "--batch-size", 2, "--frames", 80, "--tokens", 20, "--device", "cpu")


@pytest.fixture
def lengths(tmp_path):
    file = tmp_path / "lengths.txt"
    file.write_text("40\n16\n80\n33\n")
    return file


# Rounded to eights: 40, 16, 80, 40. In two shapes 40, 40, 80, 40 is the least.
@pytest.mark.parametrize("most, shapes, fed", [(8, 3, 176), (2, 2, 200), (1, 1, 320)])
def test_lengths_that_vary_share_few_shapes(myxtts, lengths, tmp_path, monkeypatch, most, shapes, fed):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    myxtts(*LITTLE, "--lengths", lengths, "--shape-buckets", most, "--json", tmp_path / "out.json")
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["shapes"] == shapes and figures["repeats"] == 4
    assert figures["padding"] == pytest.approx(1 - 169 / fed)
    assert figures["captures"] == 0, "the CPU records nothing"
    assert figures["max"] >= figures["median"] > 0 and figures["max"] >= figures["figure"]
    assert figures["limit"] is None and figures["fraction_of_limit"] is None
    seconds = 4 * figures["figure"] * 1e-3
    assert figures["audio_s_per_s"] * seconds == pytest.approx(2 * 169 * 256 / 22050)


def test_the_floor_counts_no_padding(myxtts, lengths, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    arithmetic = []
    for most in (8, 1):
        myxtts(*LITTLE, "--lengths", lengths, "--shape-buckets", most, "--tera-flops", 1, "--json", tmp_path / "out.json")
        figures = json.loads((tmp_path / "out.json").read_text())
        assert figures["limit"] == pytest.approx(figures["tflop"] * 1e3)
        arithmetic.append(figures["tflop"])
    assert arithmetic[0] == arithmetic[1] > 0


@pytest.mark.parametrize("content, place", [("40\nlong\n", ":2: 'long'"), ("0\n", ":1: '0'"), ("", "is empty")])
def test_a_wrong_file_of_lengths_is_named(myxtts, tmp_path, content, place):
    file = tmp_path / "lengths.txt"
    file.write_text(content)
    assert f"lengths.txt{place if place[0] == ':' else ' ' + place}" in myxtts(*LITTLE, "--lengths", file, status=2).stderr


def test_what_lengths_cannot_be_given_with(myxtts, lengths):
    assert "--shape-buckets" in myxtts(*LITTLE, "--shape-buckets", 2, status=2).stderr
    for flag in ("--repeats", "--steps"):
        assert flag in myxtts(*LITTLE, "--lengths", lengths, flag, 2, status=2).stderr


def processes_with(setting):
    """Those that have it in their environment."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (process / "environ").read_bytes().split(b"\0"):
                yield (process / "cmdline").read_text()
        except OSError:  # it ended, or is another user's
            pass


def test_a_rival_that_compiles_for_too_long_is_killed_and_bounded(root, tmp_path):
    eager, compiled = "PyTorch eager, lengths vary", "torch.compile, lengths vary"
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, root / "bench" / "step_rivals.py", "--device", "cpu", "--size", "tiny", "--quick", "--kill-s", "2", "--only", f"{eager}|{compiled}",
                           "--out", tmp_path / "out.json"], env={**os.environ, **cache, "MYXTTS": str(BINARY), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not list(processes_with(f"TORCHINDUCTOR_CACHE_DIR={cache['TORCHINDUCTOR_CACHE_DIR']}"))
    figures = json.loads((tmp_path / "out.json").read_text())
    ours, whole, killed = figures["myxtts_varying"]["12"]["figure"], figures["rivals"][eager], figures["rivals"][compiled]
    assert whole["steps"] == 4 and whole["slowest_steps_ms"][0] == whole["max"] and whole["ours_is_times_faster"] == pytest.approx(whole["mean"] / ours)
    assert killed["stopped"] and killed["in_warm_up"] and killed["steps"] == 0
    assert 2000 <= killed["longest_step_at_least"] <= killed["warm_up_s"] * 1e3 + 1
    assert killed["mean_at_least"] == pytest.approx(killed["warm_up_s"] * 1e3 / (2 + 4)), "over the steps of warm-up and those to be timed"
    assert killed["ours_is_times_faster_at_least"] == pytest.approx(killed["mean_at_least"] / ours, rel=1e-3)
    assert "ours is at least" in done.stdout
