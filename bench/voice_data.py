#!/usr/bin/env python3
"""A split of bench/hold_out.py as one .npz of tokens and log-mels, by the program's own loader, for models in PyTorch.

    bench/voice_data.py SPLIT OUT.npz [--config FILE]

Per part ("train", "held_out"): NAME_ids, NAME_texts, NAME_mel float16 [frames, n_mels] of all clips with
NAME_mel_ends, and NAME_UNIT int32 with NAME_UNIT_ends for three units: characters, phonemes, and "punctuated", phonemes
with the punctuation between them. Silence at the ends of clips is trimmed. vocabulary_UNIT is the number of token IDs;
mel_mean and mel_std are of the training part. Token 0 is padding, 1 a blank that is not used here."""
import argparse
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

from hold_out import own_clip

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
TYPES = {"F32": np.float32, "I32": np.int32}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = (8 + size + offset for offset in entry["data_offsets"])
            arrays[name] = np.frombuffer(data[first:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def load_all(corpus, unit, vocabulary, folder, more):
    """Clips of a corpus by ID: tokens and mel."""
    clips = {}
    for part in ([], ["--validation"]):
        command = [PROGRAM, "batches", "--train-data", corpus, "--batch-size", 1, "--num-batches", 10**6, "--trim-silence",
                   "--text-tokens", unit, "--dump", folder / "d", "--json", folder / "b.json", "--max-text-length", 1000,
                   *vocabulary, *part, *more]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        for number, batch in enumerate(json.loads((folder / "b.json").read_text())["batches"]):
            file = folder / "d" / f"batch-{number:08d}.safetensors"
            arrays = read_safetensors(file)
            tokens, frames = int(arrays["text_lengths"][0]), int(arrays["mel_lengths"][0])
            clips[batch["ids"][0]] = arrays["tokens"][0, :tokens].copy(), arrays["mel"][0, :frames].copy()
            file.unlink()
    return clips


def punctuated_phonemes(texts, language):
    """Phonemes of each text by espeak-ng, clause by clause, with the first mark of the punctuation behind a clause."""
    clauses = {text: re.findall(r"([^,.;:!?…—-]*[^\s,.;:!?…—-][^,.;:!?…—]*)([,.;:!?…—]*)", text) for text in texts}
    spoken = {}
    for words in {words.strip() for found in clauses.values() for words, _ in found}:
        done = subprocess.run(["espeak-ng", "-q", "--ipa", "-v", language, "--", words], capture_output=True, text=True, check=True)
        spoken[words] = " ".join(re.sub(r"\([^)]*\)", "", done.stdout).split())
    return [" ".join(spoken[words.strip()] + marks[:1] for words, marks in clauses[text]) for text in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("split", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--config", help="settings of the corpus, such as the mel")
    options = parser.parse_args()
    more = ["--config", options.config] if options.config else []
    arrays = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        # One corpus of both parts, so that they share a vocabulary.
        rows = {}
        for part in ("train", "held_out"):
            for line in (options.split / part / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                row["audio_filepath"] = own_clip((options.split / part / row["audio_filepath"]).resolve(), folder / "all")
                rows[pathlib.Path(row["audio_filepath"]).stem] = (part, row)
        (folder / "all" / "manifest.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for _, row in rows.values()), encoding="utf-8")
        units = {unit: load_all(folder / "all", unit, [], folder, more) for unit in ("characters", "phonemes")}
        for part in ("train", "held_out"):
            ids = sorted(clip for clip in units["characters"] if rows[pathlib.Path(clip).stem][0] == part and clip in units["phonemes"])
            arrays[f"{part}_ids"] = np.array([pathlib.Path(clip).stem for clip in ids])
            arrays[f"{part}_texts"] = np.array([rows[pathlib.Path(clip).stem][1]["text"] for clip in ids])
            mels = [units["characters"][clip][1] for clip in ids]
            arrays[f"{part}_mel"] = np.concatenate(mels).astype(np.float16)
            arrays[f"{part}_mel_ends"] = np.cumsum([len(mel) for mel in mels])
            for unit, clips in units.items():
                tokens = [clips[clip][0] for clip in ids]
                arrays[f"{part}_{unit}"] = np.concatenate(tokens)
                arrays[f"{part}_{unit}_ends"] = np.cumsum([len(each) for each in tokens])
    texts = {part: punctuated_phonemes(arrays[f"{part}_texts"].tolist(), "en-us") for part in ("train", "held_out")}
    symbols = sorted(set("".join("".join(each) for each in texts.values())))
    for part, each in texts.items():
        arrays[f"{part}_punctuated"] = np.array([2 + symbols.index(symbol) for text in each for symbol in text], np.int32)
        arrays[f"{part}_punctuated_ends"] = np.cumsum([len(text) for text in each])
    for unit in (*units, "punctuated"):
        arrays[f"vocabulary_{unit}"] = 1 + max(arrays[f"{part}_{unit}"].max() for part in ("train", "held_out"))
    mel = arrays["train_mel"].astype(np.float64)
    arrays["mel_mean"], arrays["mel_std"] = mel.mean(), mel.std()
    np.savez(options.out, **arrays)
    for part in ("train", "held_out"):
        print(f"{part}: {len(arrays[f'{part}_ids'])} clips, {len(arrays[f'{part}_mel'])} frames")


if __name__ == "__main__":
    main()
