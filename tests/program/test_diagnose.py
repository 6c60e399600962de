"""What `diagnose` says of corpora and settings that were made slow on purpose, and of sound ones."""
import json
import os
import shutil
import subprocess

import PIL.Image
import PIL.ImageStat
import numpy as np
import pytest
import soundfile
from conftest import BINARY, HANG_S, build_shim

# A disk of a given speed, or one that stands still every so many clips, in front of the system's own `pread`.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static long clips = 0;
static _Thread_local char last[4096];
static double free_at = 0;
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}
/* Until then, not for so long: who is woken late has not waited more. */
static void keep_busy(double seconds) {
  const double begin = now();
  free_at = (free_at > begin - 0.05 ? free_at : begin) + seconds;
  struct timespec end = {(time_t)free_at, (long)((free_at - (time_t)free_at) * 1e9)};
  if (free_at > begin) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}
static ssize_t slow(int file, void* into, size_t count, off_t at, const char* name) {
  ssize_t (*real)(int, void*, size_t, off_t) = dlsym(RTLD_NEXT, name);
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  const ssize_t got = real(file, into, count, at);
  if (length <= 0 || (path[length] = 0, !strstr(path, "/wavs/"))) return got;
  const char* rate = getenv("DISK_MB_PER_S"); const char* every = getenv("STALL_EVERY_CLIPS");
  pthread_mutex_lock(&disk);
  if (rate && got > 0) keep_busy(got / (atof(rate) * 1e6));
  if (every && strcmp(path, last) && ++clips % atol(every) == 0) free_at = now(), keep_busy(atof(getenv("STALL_S")));
  pthread_mutex_unlock(&disk);
  strcpy(last, path);
  return got;
}
ssize_t pread(int f, void* p, size_t n, off_t at) { return slow(f, p, n, at, "pread"); }
ssize_t pread64(int f, void* p, size_t n, off_t at) { return slow(f, p, n, at, "pread64"); }
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return build_shim(tmp_path_factory, SHIM)


def diagnose(*arguments, out, status=None, **environment):
    """Returns exit status, what `--json` wrote, and what was printed."""
    command = [BINARY, "diagnose", *map(str, arguments), "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, env={**os.environ, **environment})
    assert done.returncode in ((0, 1) if status is None else (status,)), done.stdout + done.stderr
    return done.returncode, json.loads(out.read_text()), done.stdout


# One thread: two that share their cores with others wait for each other most of the time.
ALONE = {"OMP_NUM_THREADS": "1"}


def bottleneck(corpus, tmp_path, *arguments, **more):
    common = ["bottleneck", "--train-data", corpus, "--batch-size", 4, "--device", "cpu"]
    return diagnose(*common, *arguments, out=tmp_path / "out.json", **more)


@pytest.fixture(scope="module")
def stalled(corpus, shim, tmp_path_factory):
    """A disk that stands still for 400 ms every 20 batches of 4 clips, and a ring too small to hide it."""
    folder = tmp_path_factory.mktemp("stalled")
    flags = ["--num-batches", 120, "--consumer-ms", 50, "--buffer-size", 2, "--html", folder / "page.html"]
    return folder, bottleneck(corpus, folder, *flags, LD_PRELOAD=shim, STALL_EVERY_CLIPS="80", STALL_S="0.4")


@pytest.fixture(scope="module")
def healthy(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("healthy")
    flags = ["--num-batches", 40, "--consumer-ms", 100, "--html", folder / "page.html", "--apply", folder / "applied.yaml"]
    return folder, bottleneck(corpus, folder, *flags)


def test_a_sound_run_is_called_healthy_and_left_alone(healthy):
    folder, (status, found, text) = healthy
    assert status == 0 and found["healthy"] and found["cause"] == "none" and found["limiting_stage"] == "consumer"
    assert found["recommendations"] == [] and "nothing to recommend" in text
    assert found["input_wait_fraction"] < 0.05 and not found["oscillating"]
    assert "Healthy" in found["verdict"] and "Not input-bound" in text and "Slow path not found" in text and "Data loading fast" in text
    assert found["headroom"] < 1.3 and found["gpu_busy"] is None
    assert {"mean_ms", "std_ms", "cv", "p50_ms", "p95_ms", "max_ms", "oscillating", "period_batches", "input_wait_fraction", "verdict",
            "slow_path", "stages", "headroom", "gpu_busy", "recommendations"} <= found.keys()
    assert found["p50_ms"] <= found["p95_ms"] <= found["max_ms"] and found["mean_ms"] >= 100


def test_what_is_applied_to_a_sound_run_leaves_it_sound(healthy, tmp_path):
    folder, (_, before, _) = healthy
    status, after, _ = diagnose("bottleneck", "--config", folder / "applied.yaml", "--num-batches", 20, "--consumer-ms", 100, out=tmp_path / "o.json")
    assert status == 0 and after["mean_ms"] < 1.3 * before["mean_ms"]


def test_the_slow_path_is_named_and_what_is_recommended_makes_it_faster(corpus, shim, tmp_path):
    """The disk takes longer than the processors, and less long than the consumer: natively it is hidden, on any machine."""
    config, applied = tmp_path / "slow.yaml", tmp_path / "applied.yaml"
    text = "data:\n  use_tf_native_loading: false\n"
    config.write_text(text)
    flags, disk = ["--num-batches", 20, "--consumer-ms", 100], {"LD_PRELOAD": shim, "DISK_MB_PER_S": "8"}
    status, found, said = bottleneck(corpus, tmp_path, "--config", config, "--apply", applied, *flags, **disk)
    assert status == 1 and found["cause"] == "slow path" and found["slow_path"] and "slow path" in found["verdict"]
    assert "Slow path found" in said and str(applied) in said and config.read_text() == text
    (advice,) = found["recommendations"]
    assert (advice["setting"], advice["current"], advice["proposed"]) == ("data.use_native_loading", "false", "true")
    assert advice["reason"] and advice["gain"] > 1
    _, after, _ = bottleneck(corpus, tmp_path, "--config", applied, *flags, **disk)
    assert not after["slow_path"] and after["input_wait_fraction"] < found["input_wait_fraction"]
    refused = subprocess.run([BINARY, "diagnose", "bottleneck", "--train-data", corpus, "--config", config, "--apply", config], capture_output=True, text=True)
    assert refused.returncode == 2 and "--apply" in refused.stderr and config.read_text() == text


def test_one_worker_with_mp3_clips_is_limited_by_decoding(myxtts, tmp_path):
    myxtts("demo-data", tmp_path / "mp3", "--clips", 30, "--seed", 3, "--format", "mp3")
    status, found, _ = bottleneck(tmp_path / "mp3", tmp_path, "--num-batches", 60, "--consumer-ms", 1, "--num-workers", 1)
    assert status == 1 and found["cause"] == found["limiting_stage"] == "decoding" and "Decoding limits" in found["verdict"]
    stages = found["stages"]
    assert stages["decoding"]["busy"] > max(stages[other]["busy"] for other in ("reading", "features", "copying"))
    settings = {advice["setting"]: advice for advice in found["recommendations"]}
    if os.cpu_count() > 1:
        assert settings["data.num_workers"]["current"] == "1" and int(settings["data.num_workers"]["proposed"]) > 1
    assert "WAV" in settings["corpus"]["proposed"]


def test_a_disk_of_2_megabytes_a_second_is_called_slow(corpus, shim, tmp_path):
    status, found, text = bottleneck(corpus, tmp_path, "--num-batches", 16, "--consumer-ms", 20, LD_PRELOAD=shim, DISK_MB_PER_S="2")
    assert status == 1 and found["cause"] == "slow storage" and found["limiting_stage"] == "reading" and "storage is slow" in found["verdict"]
    assert 0.5 < found["storage_mb_per_s"] < 3 and "Highly input-bound" in text
    assert found["recommendations"][0]["setting"] == "storage" and not found["recommendations"][0]["applies"]


@pytest.fixture(scope="module")
def large(corpus, tmp_path_factory):
    """The same clips in 16 channels: many bytes to read, and little to compute."""
    folder = tmp_path_factory.mktemp("large") / "corpus"
    (folder / "wavs").mkdir(parents=True)
    rows = (corpus / "metadata.csv").read_text().splitlines(keepends=True)[:8]
    (folder / "metadata.csv").write_text("".join(rows))
    for row in rows:
        name = f"{row.split('|')[0]}.wav"
        samples, rate = soundfile.read(corpus / "wavs" / name, dtype="int16")
        soundfile.write(folder / "wavs" / name, np.repeat(samples[:, None], 16, axis=1), rate)
    return folder


def test_a_consumer_that_is_faster_than_a_sound_disk_is_told_so(large, shim, tmp_path):
    status, found, _ = bottleneck(large, tmp_path, "--num-batches", 12, "--consumer-ms", 1, LD_PRELOAD=shim, DISK_MB_PER_S="60")
    assert status == 1 and found["cause"] == "consumer faster than the disk" and found["limiting_stage"] == "reading"
    assert "faster than the disk" in found["verdict"] and found["storage_mb_per_s"] < 120


def test_stalls_are_found_with_their_period(stalled):
    _, (status, found, text) = stalled
    assert status == 1 and found["cause"] == "periodic stalls" and found["limiting_stage"] == "reading"
    assert abs(found["period_batches"] - 20) <= 2 and found["oscillating"]
    assert "High variation detected" in text and "Cyclic pattern identified" in text and "stalls" in found["verdict"]


def test_with_the_model_the_model_limits(corpus, tmp_path):
    _, found, text = diagnose("bottleneck", "--train-data", corpus, "--num-batches", 8, "--batch-size", 1, "--max-mel-frames", 200, "--seconds", HANG_S, "--device", "cpu", out=tmp_path / "o.json", **ALONE)
    assert "the tiny model on the CPU" in text and found["consumer"] == "the tiny model on the CPU"
    assert found["limiting_stage"] == "consumer" and found["batches"] == 8


def test_it_ends_at_its_time_limit_with_fewer_batches(corpus, tmp_path):
    """All of them would take longer than any test may."""
    asked = 1000 * HANG_S
    _, found, text = bottleneck(corpus, tmp_path, "--num-batches", asked, "--consumer-ms", 10, "--seconds", 1)
    assert 0 < found["batches"] < asked and "see --seconds" in text


def test_a_recorded_run_can_be_the_consumer_and_is_reported_on(corpus, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    line = {"epoch": 0, "loss": 1, "gpu_busy": None, "captures": 3, "retraces": 0, "padding": 0.1}
    def write(wait, **more):
        lines = [json.dumps({"step": 10 * i, "step_ms": 40 + wait + i % 3, "input_wait_ms": wait, **line, **more}) for i in range(1, 60)]
        (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    write(0.5)
    _, found, _ = bottleneck(corpus, tmp_path, "--num-batches", 20, "--run", run)
    assert found["consumer_ms"] >= 40 and str(run) in found["consumer"]
    status, found, _ = diagnose("report", run, "--html", tmp_path / "run.html", out=tmp_path / "r.json")
    assert status == 0 and found["healthy"] and found["input_wait_fraction"] < 0.05
    page = (tmp_path / "run.html").read_text()
    assert found["verdict"] in page.replace("&quot;", '"') and "<svg" in page
    write(60, loader_reading=0.9, loader_decoding=0.05, loader_features=0.03, loader_ready=0)
    status, found, _ = diagnose("report", run, out=tmp_path / "r.json")
    assert status == 1 and found["limiting_stage"] == "reading" and "Reading limited this run" in found["verdict"]
    write(60)
    (run / "config.yaml").write_text("data: {use_native_loading: false}\n")
    status, found, _ = diagnose("report", run, out=tmp_path / "r.json")
    assert status == 1 and found["cause"] == "slow path" and found["recommendations"][0]["setting"] == "data.use_native_loading"


@pytest.mark.parametrize("arguments, word", [
    (["bottleneck", "--num-batches", 50], "--train-data"),
    (["bottleneck", "--train-data", "/nowhere"], "/nowhere"),
    (["report", "/nowhere"], "/nowhere"),
    (["bottleneck", "--train-data", "/nowhere", "--num-batches", 2], "--num-batches"),
    (["bottleneck", "--train-data", "/nowhere", "--consumer-ms", 1, "--run", "x"], "--consumer-ms"),
    (["retracing", "--config", "/nowhere.yaml"], "/nowhere.yaml"),
    (["retracing", "--steps", 0], "--steps"),
])
def test_wrong_input_is_said_in_one_sentence(myxtts, arguments, word):
    assert word in myxtts("diagnose", *arguments, status=2).stderr


def test_static_shapes_are_not_retraced_and_others_are(corpus, tmp_path):
    common = ["retracing", "--train-data", corpus, "--batch-size", 1, "--shape-buckets", 2, "--max-mel-frames", 300, "--device", "cpu", "--steps", 6]
    status, sound, text = diagnose(*common, out=tmp_path / "o.json", **ALONE)
    assert status == 0 and sound["config_ok"] and sound["problems"] == [] and "No retracing" in sound["verdict"]
    assert sound["steps"] == 6 and sound["retraces"] == 0 and 1 <= sound["captures"] == len(sound["shapes"]) <= 2
    assert all(shape["declared"] and shape["text"][0] == 1 and len(shape["mel"]) == 3 for shape in sound["shapes"])
    assert sound["mean_s"] > 0 and sound["std_s"] >= 0 and "±" in text
    status, dynamic, text = diagnose(*common, "--disable-static-shapes", out=tmp_path / "o.json", **ALONE)
    assert status == 1 and not dynamic["config_ok"] and dynamic["retraces"] == dynamic["captures"] - 1 >= 2
    assert "instead of" in dynamic["verdict"] and len(dynamic["changes"]) == dynamic["retraces"]
    assert {problem["key"] for problem in dynamic["problems"]} == {"data.pad_to_fixed_length", "training.enable_graph_mode"}
    assert all(problem["fix"] for problem in dynamic["problems"]) and not any(shape["declared"] for shape in dynamic["shapes"])


def test_a_config_with_errors_is_explained_and_a_corpus_is_made_where_none_is_given(tmp_path):
    (tmp_path / "wrong.yaml").write_text("data:\n  batch_sise: 4\n")
    status, wrong, text = diagnose("retracing", "--config", tmp_path / "wrong.yaml", out=tmp_path / "o.json")
    assert status == 1 and not wrong["config_ok"] and wrong["steps"] == 0
    assert "batch_sise" in wrong["problems"][0]["problem"] and "batch_size" in wrong["problems"][0]["fix"]
    (tmp_path / "eager.yaml").write_text("batch_size: 1\nmax_mel_frames: 200\ntraining: {enable_eager_debug: true}\n")
    status, eager, text = diagnose("retracing", "--config", tmp_path / "eager.yaml", "--steps", 2, "--device", "cpu", out=tmp_path / "o.json", TMPDIR=str(tmp_path), **ALONE)
    assert status == 1 and eager["steps"] == 2 and eager["retraces"] == 0 and "a small one made for this" in text
    (problem,) = eager["problems"]
    assert problem["key"] == "training.enable_eager_debug" and "false" in problem["fix"]
    assert not list(tmp_path.glob("myxtts-retracing*"))


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def browse(page, *flags):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--hide-scrollbars",
               "--window-size=900,3400", f"--user-data-dir={page.parent / 'profile'}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the page is not looked at")
def test_the_page_renders_in_light_and_dark_without_a_word_on_the_console(stalled, healthy):
    for folder, (_, found, _) in (stalled, healthy):
        page = folder / "page.html"
        source = page.read_text()
        assert "http" not in source.replace("http-equiv", "") and "<script" not in source, "nothing is loaded from elsewhere"
        dom = browse(page, "--dump-dom")
        assert "CONSOLE" not in dom.stderr and dom.returncode == 0
        assert found["verdict"] in dom.stdout and "</html>" in dom.stdout
        assert dom.stdout.index(found["verdict"]) < dom.stdout.index("Recommendations") < dom.stdout.index("Timeline of the stages")
        for title in ("Check-list", "Busy over time", "Batch times", "Batches ready in the ring", "Padding by shape"):
            assert title in dom.stdout
        assert dom.stdout.count('role="img"') == dom.stdout.count("<svg") == dom.stdout.count("</desc>") >= 6
        assert '<th scope="col">' in dom.stdout and "<caption>" in dom.stdout
        lightness = {}
        for scheme, number in (("light", 1), ("dark", 0)):
            picture = folder / f"{scheme}.png"
            done = browse(page, f"--blink-settings=preferredColorScheme={number}", f"--screenshot={picture}")
            assert "CONSOLE" not in done.stderr
            with PIL.Image.open(picture) as image:
                assert image.size == (900, 3400)
                grey = image.convert("L")
                lightness[scheme] = PIL.ImageStat.Stat(grey).mean[0]
                assert PIL.ImageStat.Stat(grey).stddev[0] > 10, "there is something on it"
        assert lightness["light"] > 180 and lightness["dark"] < 80
