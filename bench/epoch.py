"""Claims: over an epoch of an LJSpeech-sized corpus the GPU is never idle and no step is captured twice; static shapes
of several lengths train more audio per second than one; the first step is done soon after the start.

  python bench/epoch.py [--clips 13100] [--size normal] [--batch-size 32] [--corpus DIR] [--out FILE]

The corpus is noise in clips as long as LJSpeech's (1.1 to 10.1 s, 6.6 on average) with texts of 14 characters per second:
its steps cost what those of speech cost, its losses mean nothing. Runs: one step in a new process, three times, by the
clock of this script (index ready, from the start of the process to the line that the first step prints); two
epochs in the default shapes; two in one shape; two in eight shapes; and two in the default shapes with as many frames
in every batch as the one shape has, so that both fill the same memory. A card begins with a higher clock than it can
keep, so shapes are compared by their second epochs, by all of its audio over all of its time; the first are reported
too. The spread of the step's time is over lines of 20 steps. `diagnose watch` samples the card's clock and power while
the epochs run. MYXTTS names the program (default build/myxtts)."""
import argparse
import concurrent.futures
import contextlib
import csv
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import wave

import numpy as np

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
RATE = 22050
LONGEST_FRAMES = 880  # of the clips that are made here, and a little


def make_corpus(folder, clips):
    random = np.random.default_rng(0)
    noise = (random.standard_normal(RATE * 120) * 3000).astype(np.int16)
    lengths = np.clip(random.normal(6.57, 2.2, clips), 1.1, 10.1)
    starts = random.integers(0, RATE * 100, clips)
    texts = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz    "), max(8, int(length * 14)))).strip() for length in lengths]
    (folder / "wavs").mkdir(parents=True)

    def write(i):
        with wave.open(str(folder / "wavs" / f"{i:05d}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
            file.writeframes(noise[starts[i]:starts[i] + int(lengths[i] * RATE)].tobytes())

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(write, range(clips)))
    (folder / "metadata.csv").write_text("".join(f"{i:05d}|{text}\n" for i, text in enumerate(texts)))


def train(options, corpus, folder, *more, settings=""):
    """Returns the report, the metrics, and seconds from the start to each line printed."""
    config = folder.with_suffix(".yaml")
    config.write_text("training: {log_every: 20, validate_every: 1000000, checkpoint_every: 1000000}\n" + settings)
    report = folder.with_suffix(".json")
    command = [PROGRAM, "train", "--config", config, "--train-data", corpus, "--checkpoint-dir", folder, "--model-size", options.size,
               "--batch-size", options.batch_size, "--device", options.device, "--json", report, "--no-progress", *more]
    start, lines = time.perf_counter(), []
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1) as process:
        for line in process.stdout:
            lines.append((time.perf_counter() - start, line.rstrip()))
    if process.returncode != 0:
        raise SystemExit("\n".join(line for _, line in lines))
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return json.loads(report.read_text()), [line for line in metrics if "loss" in line], lines


def of_epoch(lines):
    """Metrics of an epoch from its lines."""
    values = lambda key: [line[key] for line in lines if line.get(key) is not None]
    median = lambda key: statistics.median(values(key)) if values(key) else None
    times = values("step_ms")
    return {"step_ms_median": median("step_ms"), "step_ms_cv": statistics.pstdev(times) / statistics.fmean(times),
            "audio_s_per_s": sum(line["audio_s_per_s"] * line["step_ms"] for line in lines) / sum(times), "padding_median": median("padding"), "gpu_busy_median": median("gpu_busy"),
            "gpu_busy_min": min(values("gpu_busy"), default=None), "gpu_utilisation_median": median("gpu_utilisation"),
            "input_wait": sum(values("input_wait_ms")) / sum(times)}


def lines_of(metrics, epoch):
    """Without the epoch's first line, whose steps began in the epoch before, and the last of all, which may have fewer steps."""
    return [line for line in metrics if line["epoch"] == epoch and line is not metrics[-1]][1:]


def summary(options, corpus, folder, *more, settings=""):
    report, metrics, lines = train(options, corpus, folder, "--epochs", 2, *more, settings=settings)
    epochs = [of_epoch(lines_of(metrics, epoch) or metrics) for epoch in (0, 1)]
    return {"steps": report["steps"], "seconds": report["seconds"], "captures": report["captures"], "retraces": report["retraces"],
            "input_wait": report["input_wait"], "first_epoch": epochs[0], "second_epoch": epochs[1],
            "capture": next((line for _, line in lines if "captured " in line), ""), "logged": metrics}


def hardware():
    gpu = "no GPU"
    if shutil.which("nvidia-smi"):
        gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    return f"{gpu}, {os.cpu_count()} cores, {platform.machine()}"


@contextlib.contextmanager
def power_watched(options, folder, result):
    """Fills `result` with what held the card's clock down, and with clock and power while it was held down."""
    table, metrics = folder / "watch.csv", folder / "watch.json"
    number = options.device.partition(":")[2] or "0"
    command = [PROGRAM, "diagnose", "watch", "--gpu", number, "--seconds", "0", "--interval-ms", "100", "--csv", table, "--json", metrics]
    watch = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        watch.send_signal(signal.SIGINT)
        watch.wait()
    if not metrics.exists():  # there is no GPU, or none that can be watched
        return
    seen = json.loads(metrics.read_text())
    result.update({key: seen[key] for key in ("samples", "throttled", "power_limit_w", "sm_mhz_limit")})
    with table.open() as file:
        held = [row for row in csv.DictReader(file) if row["throttled"] and row["sm_mhz"] and row["power_w"]]
    if held:
        clocks = [float(row["sm_mhz"]) for row in held]
        result["while_throttled"] = {"power_w_median": statistics.median(float(row["power_w"]) for row in held),
                                     "sm_mhz": {"min": min(clocks), "median": statistics.median(clocks), "max": max(clocks)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=13100)
    parser.add_argument("--size", default="normal")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--corpus", type=pathlib.Path, help="take this one; default: made for the time of the run")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        corpus = options.corpus or work / "corpus"
        if not corpus.exists():
            make_corpus(corpus, options.clips)
        subprocess.run([PROGRAM, "prepare", corpus], check=True, stdout=subprocess.DEVNULL)
        first_steps = []
        for i in range(3):
            _, _, lines = train(options, corpus, work / f"first{i}", "--max-steps", 1, "--log-level", "info")
            done = next(at for at, line in lines if "the first step is done" in line)
            first_steps.append({"seconds": done, "lines": [[round(at, 3), line] for at, line in lines]})
            print(f"first step done after {done:.2f} s")
        power = {}
        with power_watched(options, work, power):
            several = summary(options, corpus, work / "several")
            one = summary(options, corpus, work / "one", "--shape-buckets", 1)
            eight = summary(options, corpus, work / "eight", "--shape-buckets", 8)
            filled = summary(options, corpus, work / "filled", settings=f"data: {{batch_frames: {options.batch_size * LONGEST_FRAMES}}}\n")
        gains = {}
        runs = {"several_shapes": several, "one_shape": one, "eight_shapes": eight, "several_shapes_filled": filled}
        for name, run in runs.items():
            print(f"{name.replace('_', ' ')}: {run['steps']} steps, captures {run['captures']}, retraces {run['retraces']}, input wait {100 * run['input_wait']:.3f} %")
            for epoch in ("first_epoch", "second_epoch"):
                seen = run[epoch]
                gains.setdefault(epoch, {})[name] = seen["audio_s_per_s"] / one[epoch]["audio_s_per_s"]
                print(f"  {epoch.replace('_', ' ')}: {seen['step_ms_median']:.2f} ms per step (std/mean {seen['step_ms_cv']:.2%}), {seen['audio_s_per_s']:.0f} s of audio per second, "
                      f"{gains[epoch][name]:.3f} x one shape's, padding {100 * seen['padding_median']:.1f} %, GPU busy {100 * (seen['gpu_busy_median'] or 0):.2f} %, "
                      f"input wait {100 * seen['input_wait']:.3f} %")
        for reason, share in power.get("throttled", {}).items():
            print(f"the clock was held down {share:.0%} of the time: {reason}")
        if "while_throttled" in power:
            print(f"it was then at {power['while_throttled']['sm_mhz']['median']:.0f} of {power['sm_mhz_limit']:.0f} MHz in the median")
        if options.out:
            options.out.write_text(json.dumps({
                "what": f"two epochs of {options.clips} clips, {options.size}, batch {options.batch_size}",
                "hardware": hardware(),
                "commit": os.environ.get("MYXTTS_COMMIT", ""), "date": datetime.date.today().isoformat(),
                "command": f"python bench/epoch.py --batch-size {options.batch_size}",
                "first_step_s": [run["seconds"] for run in first_steps], "first_step_lines": first_steps[-1]["lines"],
                **runs, "audio_over_that_of_one_shape": gains, "power": power}, indent=1) + "\n")


if __name__ == "__main__":
    main()
