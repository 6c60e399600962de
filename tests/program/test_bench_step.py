"""`bench step`: one shape, and lengths that vary in few of them; and bench/step_peers.py, which compares it with PyTorch."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest
import step_peers
from conftest import BINARY, HANG_S

LITTLE = ("bench", "step", "--model-size", "tiny", "--batch-size", 2, "--frames", 80, "--tokens", 20, "--device", "cpu")


@pytest.fixture
def lengths(tmp_path):
    file = tmp_path / "lengths.txt"
    file.write_text("40\n16\n80\n33\n")
    return file


# Rounded to eights: 40, 16, 80, 40. In two shapes 40, 40, 80, 40 is the min.
@pytest.mark.parametrize("most, shapes, fed", [(8, 3, 176), (2, 2, 200), (1, 1, 320)])
def test_lengths_that_vary_share_few_shapes(myxtts, lengths, tmp_path, monkeypatch, most, shapes, fed):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    myxtts(*LITTLE, "--lengths", lengths, "--shape-buckets", most, "--json", tmp_path / "out.json")
    metrics = json.loads((tmp_path / "out.json").read_text())
    assert metrics["shapes"] == shapes and metrics["repeats"] == 4
    assert metrics["padding"] == pytest.approx(1 - 169 / fed)
    assert metrics["captures"] == 0, "the CPU captures nothing"
    assert metrics["max"] >= metrics["median"] > 0 and metrics["max"] >= metrics["figure"]
    assert metrics["limit"] is None and metrics["fraction_of_limit"] is None
    seconds = 4 * metrics["figure"] * 1e-3
    assert metrics["audio_s_per_s"] * seconds == pytest.approx(2 * 169 * 256 / 22050)


def test_the_limit_counts_no_padding(myxtts, lengths, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    arithmetic = []
    for most in (8, 1):
        myxtts(*LITTLE, "--lengths", lengths, "--shape-buckets", most, "--tera-flops", 1, "--json", tmp_path / "out.json")
        metrics = json.loads((tmp_path / "out.json").read_text())
        assert metrics["limit"] == pytest.approx(metrics["tflop"] * 1e3)
        arithmetic.append(metrics["tflop"])
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


# The peers. What a form's own process does is replaced by functions of this module: none of them takes longer on a slower machine.

FORM = step_peers.Form("compile", varying=True)


def options(kill_s):
    return types.SimpleNamespace(kill_s=kill_s, steps=4, warm_up=2, lengths="lj", rows=2, frames=64, tokens=16, size="tiny", tflops=790, device="cpu")


def sleep_with_a_child():
    """Sleeps without an end, and so does a process of its own: a compiler that torch.compile started."""
    subprocess.Popen(["sleep", "infinity"])
    time.sleep(float("1e9"))


def compile_for_ever(form, options, send):
    send("hardware", "a stand-in")
    for _ in range(3):  # the start, and two steps of warm-up
        send("warm-up", time.monotonic())
    sleep_with_a_child()


def compile_for_ever_in_a_timed_step(form, options, send):
    for _ in range(3):
        send("warm-up", time.monotonic())
    for _ in range(2):  # the start, and one step
        send("timed", time.monotonic())
    sleep_with_a_child()


def succeed(form, options, send):
    send("hardware", "a stand-in")
    send("warm-up", time.monotonic())
    subprocess.Popen(["sleep", "infinity"])  # left behind, as compilers are
    return {"figure": 3.0}


def fail_to_compile(form, options, send):
    raise ValueError("no such kernel")


def die(form, options, send):
    os._exit(3)


def living_processes_with(setting):
    """The command lines of those that have it in their environment, without multiprocessing's own, which lives as long as this one."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text()
            if setting.encode() in (process / "environ").read_bytes().split(b"\0") and "resource_tracker" not in command:
                yield command
        except OSError:  # it ended, or is another user's
            pass


def assert_none_is_left(setting):
    """The kernel may take its time to end what was killed, so there is only a hang guard."""
    begun = time.monotonic()
    while left := list(living_processes_with(setting)):
        assert time.monotonic() - begun < 600, left
        time.sleep(0.01)


@pytest.fixture
def mark(monkeypatch, tmp_path):
    """A setting that all processes of one test have in their environment."""
    monkeypatch.setenv("PEERS_OF_TEST", str(tmp_path))
    return f"PEERS_OF_TEST={tmp_path}"


@pytest.mark.parametrize("work, in_warm_up, steps, asked", [(compile_for_ever, True, 0, 2 + 4), (compile_for_ever_in_a_timed_step, False, 1, 4)])
def test_a_peer_that_compiles_for_ever_is_killed_with_its_children_and_bounded(mark, work, in_warm_up, steps, asked):
    result, hardware = step_peers.measure_apart(FORM, options(kill_s=3), work)
    assert_none_is_left(mark)
    assert result["stopped"] and result["in_warm_up"] == in_warm_up and result["warm_up_steps"] == 2 and result["steps"] == steps
    assert hardware == ("a stand-in" if in_warm_up else None)
    assert result["longest_step_at_least"] > 0
    if in_warm_up:
        assert result["warm_up_s"] >= 3
        assert result["mean_at_least"] == pytest.approx(result["warm_up_s"] * 1e3 / asked)


@pytest.mark.parametrize("work, wanted", [(succeed, {"figure": 3.0}), (fail_to_compile, {"failed": "ValueError: no such kernel"}),
                                          (die, {"failed": "its process died: exit 3"})])
def test_a_peer_that_ends_by_itself_is_a_result_and_leaves_no_process(mark, work, wanted):
    assert step_peers.measure_apart(FORM, options(kill_s=HANG_S), work)[0] == wanted
    assert_none_is_left(mark)


STOPPED_SCRIPT = """
import signal, sys
import step_peers, test_bench_step
if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    step_peers.measure_apart(test_bench_step.FORM, test_bench_step.options(test_bench_step.HANG_S), test_bench_step.compile_for_ever)
"""


def test_a_script_that_is_ended_ends_its_peer_too(mark, root, tmp_path):
    (tmp_path / "script.py").write_text(STOPPED_SCRIPT)
    path = os.pathsep.join([str(root / "bench"), str(root / "tests" / "program")])
    script = subprocess.Popen([sys.executable, tmp_path / "script.py"], env={**os.environ, "PYTHONPATH": path})
    while not any("infinity" in command for command in living_processes_with(mark)):
        assert script.poll() is None
        time.sleep(0.01)
    script.send_signal(signal.SIGTERM)
    assert script.wait(timeout=HANG_S) == 143
    assert_none_is_left(mark)


def test_the_bounds_of_a_killed_peer():
    """Warm-up began at 10 s; its two steps ended at 12 and 17 s. Four steps were to be timed."""
    in_warm_up = step_peers.stopped(FORM, options(0), [10, 12, 17], [], 40)
    assert in_warm_up["in_warm_up"] and in_warm_up["steps"] == 0 and in_warm_up["warm_up_steps"] == 2 and in_warm_up["shapes"] == 0
    assert in_warm_up["mean_at_least"] == pytest.approx(30e3 / (2 + 4)), "over the steps of warm-up and the steps to be timed"
    assert in_warm_up["longest_step_at_least"] == pytest.approx(23e3) and in_warm_up["warm_up_s"] == 30

    timed = step_peers.stopped(FORM, options(0), [10, 12, 17], [17, 18, 21], 23)
    assert not timed["in_warm_up"] and timed["steps"] == 2 and timed["warm_up_s"] == 7
    assert timed["mean_at_least"] == pytest.approx(6e3 / 4), "warm-up was done"
    assert timed["longest_step_at_least"] == pytest.approx(5e3), "in warm-up"
    assert timed["slowest_steps_ms"] == pytest.approx([3e3, 1e3])


def test_how_many_times_faster_ours_is_at_least():
    ours = {step_peers.OUR_SHAPES[0]: {"figure": 8.0, "capture_s": 0.2, "repeats": 100}}
    for in_warm_up, wanted in ((True, 500 / (8 + 2)), (False, 500 / 8)):  # 0.2 s of capture over 100 steps count if its warm-up counts
        result = {"stopped": True, "in_warm_up": in_warm_up, "mean_at_least": 500.0, "warm_up_steps": 1, "steps": 0, "longest_step_at_least": 1.0}
        step_peers.compare(FORM, result, {"figure": 9.0}, ours)
        assert result["ours_is_times_faster_at_least"] == pytest.approx(wanted)
        assert "ours is at least" in step_peers.line_of(FORM, result, options(0))


def test_the_script_compares_ours_with_peers(root, tmp_path):
    """No limit of time that could be reached."""
    fixed, varying = "PyTorch eager", "PyTorch eager, lengths vary"
    limits = [part for flag in ("--kill-s", "--limit-s", "--total-s") for part in (flag, str(HANG_S))]
    done = subprocess.run([sys.executable, root / "bench" / "step_peers.py", "--device", "cpu", "--size", "tiny", "--quick", *limits, "--only", f"{fixed}|{varying}",
                           "--out", tmp_path / "out.json"], env={**os.environ, "MYXTTS": str(BINARY), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "out.json").read_text())
    assert metrics["peers"].keys() == {fixed, varying} and metrics["left_out"] == [] and metrics["myxtts"] and metrics["hardware"]
    one, several = metrics["peers"][fixed], metrics["peers"][varying]
    assert one["steps"] == several["steps"] == 4 and one["warm_up_steps"] == several["warm_up_steps"] == 2 and one["shapes"] == 1
    assert several["slowest_steps_ms"][0] == several["max"]
    assert one["ours_is_times_faster"] == pytest.approx(one["figure"] / metrics["myxtts"]["figure"])
    assert several["ours_is_times_faster"] == pytest.approx(several["mean"] / metrics["myxtts_varying"]["12"]["figure"])
    assert done.stdout.count("ours is") == 2
