#!/usr/bin/env python3
"""Judge voices of several speakers, or clones: of each spoken clip, is the nearest speaker the right one?

    bench/speaker_eval.py RECORDINGS/manifest.jsonl SPOKEN [--texts TEXTS.txt] --out RESULT.json

SPOKEN has a folder of WAVs for each speaker, named as in the manifest. A speaker is the mean vector (Resemblyzer) of the
--clips longest recordings, since a word alone says little about who speaks; the nearest of all speakers in SPOKEN counts. For comparison the recordings themselves are judged,
each against the means of the others. With --texts, the WAVs in the order of their names say its lines: the character
error rate is judged too. Similarity and predicted MOS are always."""
import argparse
import json
import os
import pathlib
import shlex
import sys
import time

import numpy as np
from voice_eval import Mos, Recogniser, Similarity, hardware, read_audio, read_manifest, summary, version


def nearest(vector, means, own, without=None):
    """The speaker whose mean is nearest; from the mean of `own` the vector `without` is taken off first."""
    scores = {}
    for speaker, vectors in means.items():
        kept = [each for each in vectors if each is not without] if speaker == own else vectors
        mean = np.mean(kept, 0)
        scores[speaker] = float(vector @ mean / np.linalg.norm(mean))
    return max(scores, key=scores.get), scores[own]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest", type=pathlib.Path)
    parser.add_argument("spoken", type=pathlib.Path)
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="ID", help="recordings that were shown to the voice")
    parser.add_argument("--clips", type=int, default=20, help="recordings per speaker")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    speakers = sorted(folder.name for folder in options.spoken.iterdir() if folder.is_dir())
    recordings = {speaker: [] for speaker in speakers}
    for clip in sorted(read_manifest(options.manifest), key=lambda clip: -clip.get("duration", 0)):
        if clip.get("speaker") in recordings and clip["id"] not in options.leave_out:
            recordings[clip["speaker"]].append(clip["audio_filepath"])
    missing = [speaker for speaker, paths in recordings.items() if len(paths) < 2]
    if missing:
        sys.exit(f"{options.manifest} has no two recordings of {', '.join(missing)}")
    encoder, mos = Similarity([]), Mos()
    means = {speaker: [encoder.vector(read_audio(path)) for path in paths[: options.clips]] for speaker, paths in recordings.items()}

    found = [nearest(vector, means, speaker, vector)[0] == speaker for speaker, vectors in means.items() for vector in vectors]
    print(f"recordings: right speaker of {len(speakers)} in {100 * np.mean(found):.1f} % of {len(found)} clips", flush=True)
    recogniser = Recogniser() if options.texts else None
    texts = options.texts.read_text(encoding="utf-8").splitlines() if options.texts else []
    rows = []
    for speaker in speakers:
        paths = sorted((options.spoken / speaker).glob("*.wav"))
        for number, path in enumerate(paths):
            samples = read_audio(path)
            who, similarity = nearest(encoder.vector(samples), means, speaker)
            row = {"speaker": speaker, "id": path.stem, "nearest": who, "similarity": similarity} | mos.judge(samples, {})
            if recogniser:
                row |= recogniser.judge(samples, {"text": texts[number]})
            rows.append(row)
        of_speaker = [row for row in rows if row["speaker"] == speaker]
        right = np.mean([row["nearest"] == speaker for row in of_speaker])
        print(f"{speaker}: {100 * right:.0f} % right, similarity {np.mean([row['similarity'] for row in of_speaker]):.3f}", flush=True)
    totals = summary(rows) | {"right": float(np.mean([row["nearest"] == row["speaker"] for row in rows]))}
    print(", ".join(f"{name} {value:.3f}" for name, value in totals.items()))
    options.out.write_text(json.dumps({
        "what": f"{len(rows)} clips of {len(speakers)} speakers: is the nearest speaker the right one?",
        "means": totals,
        "recordings_right": float(np.mean(found)),
        "clips": rows,
        "judges": [version(judge.package) for judge in (encoder, mos, recogniser) if judge],
        "hardware": hardware(),
        "commit": os.environ.get("MYXTTS_COMMIT", "unknown"),
        "date": time.strftime("%Y-%m-%d"),
        "command": "bench/speaker_eval.py " + shlex.join(sys.argv[1:]),
    }, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
