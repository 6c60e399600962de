"""`diagnose watch` against a stand-in for NVIDIA's library that plays a scripted load (tests/tools/fake_nvml.cpp). Both run
by a clock that only their own sleeps advance, so that no sample is late, however loaded the machine is."""
import csv
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest
from conftest import BINARY, HANG_S, build_shim

FAKE = BINARY.parent / "tests" / "libfake_nvml.so"
KEYS = {"gpu", "name", "seconds", "samples", "source", "utilisation", "verdict", "sentence", "period_s", "power_w",
        "power_limit_w", "memory_mb", "memory_total_mb", "sm_active", "tensor_active", "nvml_utilisation", "throttled",
        "pcie_to_gpu_mb_s", "pcie_from_gpu_mb_s", "sm_mhz", "memory_mhz", "temperature_c", "sample_us"}


# Every look at the clock takes 1 us, so that no two are the same.
CLOCK = r"""
#include <time.h>
static _Atomic long long now_ns = 1000000000000LL;
int clock_gettime(clockid_t clock, struct timespec* time) {
  (void)clock;
  const long long now = now_ns += 1000;
  time->tv_sec = now / 1000000000, time->tv_nsec = now % 1000000000;
  return 0;
}
int nanosleep(const struct timespec* asked, struct timespec* left) {
  (void)left;
  now_ns += asked->tv_sec * 1000000000LL + asked->tv_nsec;
  return 0;
}
int clock_nanosleep(clockid_t clock, int flags, const struct timespec* asked, struct timespec* left) {
  (void)clock;
  if (flags != TIMER_ABSTIME) return nanosleep(asked, left);
  const long long until = asked->tv_sec * 1000000000LL + asked->tv_nsec;
  if (until > now_ns) now_ns = until;
  return 0;
}
"""


def environment(wave, **more):
    fake = {"MYXTTS_NVML_LIBRARY": str(FAKE), "FAKE_NVML_WAVE": wave}
    return {**os.environ, **fake, **{f"FAKE_NVML_{name.upper()}": str(value) for name, value in more.items()}}


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    return {"LD_PRELOAD": build_shim(tmp_path_factory, CLOCK)}


@pytest.fixture
def watch(clock, tmp_path):
    """Watches the played load; returns what was printed and the JSON."""

    def run(wave, *arguments, status, seconds=4, **more):
        file = tmp_path / "watch.json"
        done = subprocess.run([BINARY, "diagnose", "watch", "--seconds", str(seconds), "--json", file, *arguments],
                              env=environment(wave, **more) | clock, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        assert done.stderr == ""
        return done.stdout, json.loads(file.read_text())

    return run


@pytest.mark.parametrize("gpm, source", [(1, "sm_activity"), (0, "nvml_utilisation")])
def test_bursts_are_fluctuating_with_their_period(watch, gpm, source):
    printed, found = watch("0,100,1.2", status=1, seconds=6, gpm=gpm)
    assert found["verdict"] == "fluctuating"
    assert found["source"] == source
    assert found["period_s"] == pytest.approx(1.2, rel=0.1)
    assert found["utilisation"]["p5"] < 10 and found["utilisation"]["p95"] > 70
    assert re.search(r"^fluctuating: the GPU swings between \d+ % and \d+ % every 1\.\d+ s", printed, re.MULTILINE)


def test_short_waits_show_where_the_card_counts_activity(watch):
    """The card counts in steps of 0.1 s: a period of a few of them is found, with samples ten times as dense."""
    _, counted = watch("0,100,0.6", "--interval-ms", "10", status=1, seconds=5, gpm=1)
    assert counted["verdict"] == "fluctuating"
    assert counted["period_s"] == pytest.approx(0.6, rel=0.1)


def test_a_low_load_is_under_used_and_its_rhythm_is_told(watch):
    printed, found = watch("2,40,1", status=1, seconds=5)
    assert found["verdict"] == "under-used"
    assert found["period_s"] == pytest.approx(1, rel=0.1)
    assert "under-used: even at its best the GPU is at 40 %" in printed


def test_a_full_load_is_steady(watch):
    printed, found = watch("0,97,0", status=0, seconds=2, gpm=0)
    assert found["verdict"] == "steady" and found["period_s"] is None
    assert found["utilisation"] == {"mean": pytest.approx(97), "std": pytest.approx(0, abs=1e-6), "p5": 97, "p50": 97,
                                    "p95": 97, "max": 97}
    assert "steady: the GPU stays between 97 % and 97 %" in printed


def test_every_figure_is_in_the_json(watch):
    printed, found = watch("0,100,0", "--gpu", "1", status=0, seconds=2, gpm=1, reasons=4)
    assert KEYS <= found.keys()
    assert found["gpu"] == 1 and found["name"] == "Fake GPU 1"
    assert found["seconds"] == pytest.approx(2, abs=0.1) and 36 <= found["samples"] <= 40
    assert found["power_w"] == pytest.approx(300) and found["power_limit_w"] == 300
    assert found["memory_mb"] == 4096 and found["memory_total_mb"] == 16384
    assert found["sm_active"] == pytest.approx(90) and found["tensor_active"] == pytest.approx(50)
    assert found["pcie_to_gpu_mb_s"] == pytest.approx(200)
    assert found["throttled"] == {"power limit": pytest.approx(1)}
    assert "clocks were held down 100 % of the time: power limit" in printed
    assert "PCIe 200 MB/s in, 3 out" in printed


def test_figures_that_a_card_does_not_report_are_null_and_left_out(watch):
    printed, found = watch("0,100,0", status=0, seconds=2)
    assert found["sm_active"] is None and found["tensor_active"] is None
    assert found["pcie_to_gpu_mb_s"] == pytest.approx(100)  # the driver counts it where the card does not
    assert "SM " not in printed.split("judged by")[0]


def test_the_csv_has_a_row_for_each_sample(watch, tmp_path):
    _, found = watch("0,100,1", "--csv", str(tmp_path / "watch.csv"), status=1, seconds=3, gpm=1, reasons=36)
    with open(tmp_path / "watch.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found["samples"]
    times = [float(row["time_s"]) for row in rows]
    assert times == sorted(times)
    mean = sum(float(row["sm_active_percent"]) for row in rows) / len(rows)
    assert mean == pytest.approx(found["utilisation"]["mean"], rel=0.01)
    assert {row["throttled"] for row in rows} == {"power limit, heat"}


def test_without_a_terminal_there_is_one_plain_line_per_second(watch):
    printed, _ = watch("0,100,0", status=0, seconds=3)
    assert "\033" not in printed
    assert len(re.findall(r"^ +\d+\.\d s  utilisation", printed, re.MULTILINE)) == 3


@pytest.mark.parametrize("more, says", [
    ({"MYXTTS_NVML_LIBRARY": "/nowhere/libnvidia-ml.so.1"}, "cannot load the NVIDIA driver"),
    ({"FAKE_NVML_FAILS": "init"}, "Driver Not Loaded"),
    ({"FAKE_NVML_GPUS": "0"}, "finds no GPU"),
])
def test_without_a_gpu_it_says_so(myxtts, more, says):
    assert says in myxtts("diagnose", "watch", status=2, env={**environment("0,100,0"), **more}).stderr


def test_wrong_numbers_are_refused(myxtts):
    env = environment("0,100,0")
    assert "from 0 to 1" in myxtts("diagnose", "watch", "--gpu", 7, status=2, env=env).stderr
    assert "--seconds" in myxtts("diagnose", "watch", "--seconds", -1, status=2, env=env).stderr
    assert "--interval-ms" in myxtts("diagnose", "watch", "--interval-ms", 0, status=2, env=env).stderr
    assert "watch" in myxtts("diagnose", status=2).stderr + myxtts("diagnose", "--help").stdout


def test_ctrl_c_ends_with_the_verdict(tmp_path):
    """By the clock of the machine: a line comes with each of three different samples."""
    process = subprocess.Popen([BINARY, "diagnose", "watch", "--seconds", "0", "--json", tmp_path / "f.json"],
                               env=environment("0,100,0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("GPU 0")
    for _ in range(3):
        assert "utilisation" in process.stdout.readline()  # comes at once, not when the program ends
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, errors
    assert "steady: the GPU stays" in printed
    assert json.loads((tmp_path / "f.json").read_text())["samples"] >= 3


def run_on_terminal(*arguments, columns, env):
    """What the program writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([BINARY, *arguments], env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=HANG_S), text.decode()


@pytest.mark.parametrize("columns", [100, 40])
def test_on_a_terminal_a_panel_with_a_chart_is_redrawn(clock, columns):
    status, text = run_on_terminal("diagnose", "watch", "--seconds", "3", columns=columns,
                                   env=environment("0,100,1", gpm=1) | clock)
    assert status == 1
    frames = re.split(r"\033\[\d+A", text)
    assert len(frames) == 15
    lines = [line.removeprefix("\r\033[K").rstrip() for line in frames[1].split("\n")]
    assert lines[0].startswith("GPU 0, Fake GPU 0") and "of 3 s" in lines[0]
    assert max(map(len, lines)) <= columns
    last_chart = frames[-1].split("\n")[4:8]
    assert any("█" in line for line in last_chart) and "now" in frames[-1]
    assert "fluctuating: the GPU swings" in frames[-1]


def test_no_progress_writes_plain_lines_on_a_terminal_too(clock):
    status, text = run_on_terminal("--no-progress", "diagnose", "watch", "--seconds", "1.5", columns=80,
                                   env=environment("0,100,0") | clock)
    assert status == 0
    assert "\033" not in text and "utilisation 100 %" in text
