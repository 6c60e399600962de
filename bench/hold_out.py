#!/usr/bin/env python3
"""Split one speaker of a JSON-lines corpus into clips to train on and clips to judge by.

    bench/hold_out.py CORPUS/manifest.jsonl OUT [--speaker NAME] [--language en] [--clips 40]

OUT/train and OUT/held_out are corpora of their own, whose clips are further names of the original files, or copies on
another file system. Without --speaker it takes the
speaker with most minutes. Clips are chosen by a hash of their names, so that a split never changes; no text of a
held-out clip is left in training."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil


def plain(text):
    return " ".join(re.findall(r"\w+", text.lower()))


def own_clip(source, folder):
    """The clip in the corpus's own folder, as its manifest names it."""
    target = folder / "clips" / source.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
    return str(target.relative_to(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--speaker")
    parser.add_argument("--language")
    parser.add_argument("--clips", type=int, default=40, help="held-out clips")
    parser.add_argument("--min-words", type=int, default=4, help="shortest text to judge by")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.manifest.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [row for row in rows if options.language in (None, row.get("language"))]
    minutes = collections.Counter()
    for row in rows:
        minutes[row["speaker"]] += row["duration"] / 60
    speaker = options.speaker or minutes.most_common(1)[0][0]
    rows = [row for row in rows if row["speaker"] == speaker]

    def rank(row):
        return hashlib.sha256(row["audio_filepath"].encode()).hexdigest()

    held_out, texts = [], set()
    for row in sorted(rows, key=rank):
        if len(held_out) == options.clips:
            break
        text = plain(row["text"])
        if len(text.split()) >= options.min_words and text not in texts and row["duration"] <= 12:
            held_out.append(row)
            texts.add(text)
    parts = {"held_out": held_out, "train": [row for row in rows if plain(row["text"]) not in texts]}
    for name, part in parts.items():
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for row in part:
            clip = own_clip((options.manifest.parent / row["audio_filepath"]).resolve(), folder)
            lines.append(json.dumps({**row, "audio_filepath": clip}, ensure_ascii=False))
        (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}: {len(part)} clips of {speaker}, {sum(row['duration'] for row in part) / 60:.1f} min")


if __name__ == "__main__":
    main()
