"""Claim: with 8 to 1,024 ranks every clip comes once an epoch, ranks read equally many bytes, and planning is cheap.

  python bench/rank_plan.py [--out FILE]

A simulation without a GPU and without files: tests/tools/rank_plan.cpp plans every rank's share of an epoch of 2,000,000
made-up clips (1 to 12 s, 8 shapes, 16 clips per rank and batch) and adds up the bytes of the clips, as 16-bit PCM at
22,050 Hz. Compared with nothing: the limits are those of the design, 5 % between ranks and 1 ms per batch. Limit: the
times are processor time of one run on one core. RANK_PLAN names the tool (default
build/tests/rank_plan)."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess

TOOL = os.environ.get("RANK_PLAN", "build/tests/rank_plan")
CLIPS, ROWS, WORLDS = 2_000_000, 16, (8, 16, 32, 64, 128, 256, 512, 1024)
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out")
options = parser.parse_args()
done = subprocess.run([TOOL, *map(str, (CLIPS, ROWS, *WORLDS))], check=True, capture_output=True, text=True)
results = json.loads(done.stdout)
for one in results:
    print(f"{one['ranks']:5} ranks: {one['batches_per_epoch']:6} batches, {one['clips_seen_twice']} clips twice, spread of bytes "
          f"{one['bytes_spread']:.2%}, planning {one['planning_ms_mean']:.4f} ms a batch, at most {one['planning_ms_max']:.3f}")
if options.out:
    commit = os.environ.get("MYXTTS_COMMIT") or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    result = {"what": "an epoch of 2,000,000 made-up clips, planned for many ranks: a simulation, nothing is read",
              "hardware": f"{os.cpu_count()} x {model[0] if model else platform.machine()}, one used, shared with other work",
              "command": "python bench/rank_plan.py", "commit": commit, "date": datetime.date.today().isoformat(),
              "clips": CLIPS, "rows_per_rank": ROWS, "results": results}
    pathlib.Path(options.out).write_text(json.dumps(result, indent=2) + "\n")
