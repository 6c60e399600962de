"""Claim: the share of padding in the batches, by the number of static shapes, for LJSpeech-like lengths.

  python bench/padding.py [--out FILE]

13,100 clips of noise, normal lengths (mean 6.57 s, std 2.2, clipped to 1.1 to 10.1 s), preset hifigan, batches of 16.
They are 1,000 Hz, 8-bit: only their lengths count. Limit: none below, the plan is the exact optimum for its number of
shapes. MYXTTS names the program (default build/myxtts)."""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import wave

import numpy as np

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out")
options = parser.parse_args()
padding = {}
with tempfile.TemporaryDirectory(prefix="myxtts_padding_") as name:
    folder = pathlib.Path(name)
    (folder / "wavs").mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for i, seconds in enumerate(np.clip(rng.normal(6.57, 2.2, 13100), 1.1, 10.1)):
        with wave.open(str(folder / "wavs" / f"{i:05d}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(1), file.setframerate(1000)
            file.writeframes(rng.integers(0, 256, int(seconds * 1000), dtype=np.uint8).tobytes())
        rows.append(f"{i:05d}|some words")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    for shapes in (1, 2, 4, 6, 8, 10, 11, 12, 16):
        out = folder / "report.json"
        subprocess.run([PROGRAM, "prepare", folder, "--shape-buckets", str(shapes), "--json", out], check=True, capture_output=True)
        report = json.loads(out.read_text())
        padding[len(report["shapes"])] = report["padding"]
        print(f"{len(report['shapes']):3} shapes: {report['padding']:6.2%} padding")
if options.out:
    commit = os.environ.get("MYXTTS_COMMIT") or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    result = {"what": "share of the mel frames fed that is padding, by the number of static shapes", "corpus": "13,100 clips, LJSpeech-like lengths, synthetic",
              "command": "python bench/padding.py", "commit": commit, "date": datetime.date.today().isoformat(), "padding": padding}
    pathlib.Path(options.out).write_text(json.dumps(result, indent=2) + "\n")
