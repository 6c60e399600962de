"""Claim: the memory that `train` expects of a step, when it chooses a batch size from a range, is what the step takes, or
a little more.

  python bench/step_memory.py [--out FILE]

GPU memory of uncaptured steps (free memory before the model and after its steps) beside the estimate of
src/train/memory_plan.cpp, for every model size, two batch sizes and two lengths: bfloat16 with fused kernels, bfloat16
with plain operations, and float32. A captured step may hold twice as much on a GPU with much free memory; one is shown
for each size. MYXTTS names the program (default build/myxtts)."""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import tempfile

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
FORMS = {"bfloat16, fused": ["--disable-graph-mode"],
         "bfloat16, plain operations": ["--disable-graph-mode", "--disable-fused-kernels"],
         "float32, plain operations": ["--optimization-level", "basic"]}


def measure(size, rows, frames, flags):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "step.json"
        subprocess.run([PROGRAM, "bench", "step", "--device", "cuda:0", "--model-size", size, "--batch-size", str(rows), "--frames", str(frames),
                        "--tokens", str(frames * 150 // 800), "--repeats", "1", "--steps", "2", *flags, "--json", out], check=True, capture_output=True)
        step = json.loads(out.read_text())
    return {"size": size, "rows": rows, "frames": frames, "gigabytes": step["memory_bytes"] / 1e9, "estimate": step["estimated_bytes"] / 1e9}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    options = parser.parse_args()
    results = []
    for size in ("tiny", "small", "normal", "big"):
        for form, flags in FORMS.items():
            for rows, frames in ((8, 400), (8, 800), (32, 800)):
                results.append({"form": form, **measure(size, rows, frames, flags)})
        results.append({"form": "bfloat16, fused, captured", **measure(size, 32, 800, [])})
    for one in results:
        one["estimate_over_measured"] = one["estimate"] / one["gigabytes"]
        print(f"{one['form']:28} {one['size']:7} {one['rows']:3} x {one['frames']}  {one['gigabytes']:7.2f} GB, estimate {one['estimate']:7.2f} GB ({one['estimate_over_measured']:.2f} x)")
    if options.out:
        gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        pathlib.Path(options.out).write_text(json.dumps({"what": "GPU memory of a training step beside its estimate", "hardware": gpu, "commit": commit or None,
                                                         "date": datetime.date.today().isoformat(), "command": "python bench/step_memory.py", "steps": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
