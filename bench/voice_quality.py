#!/usr/bin/env python3
"""How near a trained voice comes to the speech it learnt from, on sentences that it never saw.

    bench/voice_quality.py --corpus DIR --checkpoint DIR --untrained DIR --out FILE.json [--wavs FOLDER]

For each held-out clip three renderings are compared with the clip itself by mel-cepstral distortion after time
alignment (dynamic time warping over 13 cepstra of the 80 log-mel bands, without the level):
  the voice       synth, Griffin-Lim
  the ceiling     the clip's own mel through Griffin-Lim: what a perfect voice would get
  the floor       the same voice before training
The corpus may be espeak-ng's (`demo-data --voice espeak-ng`): then this measures how well espeak-ng was learnt, and
nothing about people.
"""
import argparse
import csv
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def cepstra(wav, folder):
    """Mel cepstra 1 to 13 of every frame: the shape of the spectrum without its level."""
    run("mel", wav, folder / "mel.npy")
    mel = np.load(folder / "mel.npy").astype(np.float64)
    bands = mel.shape[1]
    order = np.arange(1, 14)[:, None]
    basis = np.cos(np.pi * order * (np.arange(bands) + 0.5) / bands) * np.sqrt(2.0 / bands)
    return mel @ basis.T


def distortion(one, other):
    """In dB, along the best alignment in time."""
    distance = np.sqrt(2 * np.maximum(0, (one**2).sum(1)[:, None] + (other**2).sum(1)[None] - 2 * one @ other.T))
    total = np.full((len(one) + 1, len(other) + 1), np.inf)
    steps = np.zeros_like(total)
    total[0, 0] = 0
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            best = min((total[i - 1, j - 1], steps[i - 1, j - 1]), (total[i - 1, j], steps[i - 1, j]), (total[i, j - 1], steps[i, j - 1]))
            total[i, j] = best[0] + distance[i - 1, j - 1]
            steps[i, j] = best[1] + 1
    return 10 / np.log(10) * total[-1, -1] / steps[-1, -1]


def held_out(corpus, config, folder):
    report = folder / "batches.json"
    more = ["--config", config] if config else []
    run("batches", "--train-data", corpus, "--validation", "--num-batches", 1000, "--json", report, *more)
    ids = [clip for batch in json.loads(report.read_text())["batches"] for clip in batch["ids"]]
    with open(corpus / "metadata.csv", encoding="utf-8", newline="") as file:
        texts = {row[0]: row[1] for row in csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)}
    return [(clip, texts[clip]) for clip in ids]


def hardware():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip() or platform.machine()
    except OSError:
        return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--untrained", type=pathlib.Path, required=True)
    parser.add_argument("--config", help="the configuration that training had")
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--wavs", type=pathlib.Path, help="keep what was spoken here")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        wavs = options.wavs or folder / "wavs"
        wavs.mkdir(parents=True, exist_ok=True)
        for clip, text in held_out(options.corpus, options.config, folder)[: options.clips]:
            true = options.corpus / "wavs" / f"{clip}.wav"
            kinds = {kind: wavs / f"{clip}-{kind}.wav" for kind in ("voice", "ceiling", "floor")}
            run("synth", "--checkpoint", options.checkpoint, "--text", text, "--out", kinds["voice"])
            run("synth", "--checkpoint", options.untrained, "--text", text, "--out", kinds["floor"])
            run("mel", true, folder / "own.npy", "--resynth", kinds["ceiling"])
            reference = cepstra(true, folder)
            rows.append({"id": clip, "text": text, **{kind: distortion(cepstra(wav, folder), reference) for kind, wav in kinds.items()}})
            print(f"{clip}  voice {rows[-1]['voice']:.2f}  ceiling {rows[-1]['ceiling']:.2f}  floor {rows[-1]['floor']:.2f} dB", flush=True)
    means = {kind: float(np.mean([row[kind] for row in rows])) for kind in ("voice", "ceiling", "floor")}
    spread = {kind: float(np.std([row[kind] for row in rows])) for kind in ("voice", "ceiling", "floor")}
    print(f"mean of {len(rows)}: voice {means['voice']:.2f}, ceiling {means['ceiling']:.2f}, floor {means['floor']:.2f} dB")
    result = {
        "what": "mel-cepstral distortion of held-out sentences after time alignment",
        "unit": "dB",
        "corpus": str(options.corpus),
        "means": means,
        "stds": spread,
        "clips": rows,
        "hardware": hardware(),
        "commit": os.environ.get("MYXTTS_COMMIT", "unknown"),
        "date": time.strftime("%Y-%m-%d"),
        "command": "bench/voice_quality.py " + " ".join(sys.argv[1:]),
    }
    options.out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
