#!/usr/bin/env python3
"""Judge voices on texts that they never saw: character and word error rates, predicted MOS, speaker similarity and
mel-cepstral distortion, for the recordings, their Griffin-Lim and any number of checkpoints. Vocoders are judged by
what they make of the recordings' own mels.

    bench/voice_eval.py HELD_OUT/manifest.jsonl [--reference TRAIN/manifest.jsonl] [--preset NAME]
        [--checkpoint NAME=FOLDER ...] [--vocoder NAME=FILE ...] [--mels NAME=FILE.npz ...] [--wavs NAME=FOLDER ...]
        --out RESULT.json

Judges (bench/requirements-voice.txt says how to install them; a missing one is skipped with a note):
  CER, WER    moonshine-voice, English; other languages have no recogniser here
  MOS         distillmos
  similarity  Resemblyzer: cosine with the mean vector of the speaker's reference clips
  PESQ        pesq, wide band, of what was made from a recording's own mel
  MCD         mel-cepstral distortion from the recording after dynamic time warping, in dB; needs no package
Judges are models. A difference means something on the same texts and speaker only."""
import argparse
import contextlib
import importlib.metadata
import io
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
import types

import numpy as np

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
RATE = 16000  # of all judges
METRICS = {"cer": "CER", "wer": "WER", "mos": "MOS", "similarity": "similarity", "pesq": "PESQ", "mcd": "MCD dB"}
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen").split()
TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def number_in_words(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (" " + ONES[n % 10] if n % 10 else "")
    for unit, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if n >= unit:
            return number_in_words(n // unit) + " " + name + (" " + number_in_words(n % unit) if n % unit else "")


def words_of(text):
    """Words as they are compared: lower case, numbers spelled out, no punctuation."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower().replace("’", "'"))
    text = re.sub(r"\d+", lambda found: " " + number_in_words(int(found.group()[:12])) + " ", text)
    return [word.strip("'") for word in re.findall(r"[^\W_]+(?:'[^\W_]+)*", text)]


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        new = [i]
        for j, y in enumerate(other, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (x != y)))
        row = new
    return row[-1]


def read_audio(path):
    import soundfile
    from scipy.signal import resample_poly

    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    samples = samples.mean(1)
    return samples if rate == RATE else resample_poly(samples, RATE, rate).astype(np.float32)


class Recogniser:
    package = "moonshine-voice"

    def __init__(self):
        import moonshine_voice
        from moonshine_voice import ModelArch
        from moonshine_voice.transcriber import Transcriber

        model = pathlib.Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
        self.transcriber = Transcriber(str(model), ModelArch.TINY)

    def judge(self, samples, clip):
        # The recogniser cuts off words at the edges of a clip without silence around it.
        padded = np.concatenate([np.zeros(RATE // 4, np.float32), samples, np.zeros(RATE // 2, np.float32)])
        lines = self.transcriber.transcribe_without_streaming(padded.tolist(), RATE).lines
        heard, said = words_of(" ".join(line.text for line in lines)), words_of(clip["text"])
        return {
            "heard": " ".join(heard),
            "characters": len(" ".join(said)), "character_errors": edit_distance(" ".join(heard), " ".join(said)),
            "words": len(said), "word_errors": edit_distance(heard, said),
        }


class Mos:
    package = "distillmos"

    def __init__(self):
        # distillmos imports torchaudio, and calls it from its command line alone: an empty module is enough.
        transforms = types.ModuleType("torchaudio.transforms")
        transforms.MFCC = transforms.Resample = None
        sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))
        sys.modules.setdefault("torchaudio.transforms", transforms)
        import torch
        from distillmos import ConvTransformerSQAModel

        self.torch = torch
        with contextlib.redirect_stdout(io.StringIO()):
            self.model = ConvTransformerSQAModel().eval()

    def judge(self, samples, clip):
        with self.torch.no_grad():
            return {"mos": float(self.model(self.torch.from_numpy(samples)[None]))}


class Similarity:
    package = "Resemblyzer"

    def __init__(self, references):
        with contextlib.redirect_stdout(io.StringIO()):
            from resemblyzer import VoiceEncoder, preprocess_wav

            self.encoder = VoiceEncoder("cpu", verbose=False)
        self.preprocess = preprocess_wav
        self.vectors = {path: self.vector(read_audio(path)) for path in references}

    def vector(self, samples):
        speech = self.preprocess(samples, source_sr=RATE)
        return self.encoder.embed_utterance(speech if len(speech) > RATE // 4 else samples)

    def judge(self, samples, clip):
        others = [vector for path, vector in self.vectors.items() if path != clip["audio_filepath"]]
        mean = np.mean(others, 0)
        return {"similarity": float(self.vector(samples) @ mean / np.linalg.norm(mean))}


class Pesq:
    """Of a sound that should be the recording, sample for sample."""
    package = "pesq"

    def __init__(self):
        from pesq import pesq

        self.pesq = pesq

    def judge(self, samples, clip):
        real = read_audio(clip["audio_filepath"])
        length = min(len(real), len(samples))
        return {"pesq": float(self.pesq(RATE, real[:length], samples[:length], "wb"))}


def cepstra(wav, scratch):
    """Mel cepstra 1 to 13 of every frame: log amplitude = c0 + sum of c_k cos(k w), so that distances are in dB as usual."""
    run("mel", wav, scratch / "mel.npy")
    mel = np.load(scratch / "mel.npy").astype(np.float64)
    bands = mel.shape[1]
    basis = np.cos(np.pi * np.arange(1, 14)[:, None] * (np.arange(bands) + 0.5) / bands) * 2 / bands
    return mel @ basis.T


def distortion(one, other):
    """Mean distance in dB along the best path of dynamic time warping, computed by anti-diagonals."""
    distance = np.sqrt(2 * np.maximum(0, (one**2).sum(1)[:, None] + (other**2).sum(1)[None] - 2 * one @ other.T))
    n, m = distance.shape
    total = np.full((n + 1, m + 1), np.inf)
    steps = np.zeros((n + 1, m + 1))
    total[0, 0] = 0
    for diagonal in range(2, n + m + 1):
        i = np.arange(max(1, diagonal - m), min(n, diagonal - 1) + 1)
        j = diagonal - i
        before = np.stack([total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]])
        counts = np.stack([steps[i - 1, j - 1], steps[i - 1, j], steps[i, j - 1]])
        best = before.argmin(0)
        total[i, j] = before[best, np.arange(len(i))] + distance[i - 1, j - 1]
        steps[i, j] = counts[best, np.arange(len(i))] + 1
    return 10 / np.log(10) * total[n, m] / steps[n, m]


def read_manifest(path):
    clips = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    for clip in clips:
        clip["audio_filepath"] = str((path.parent / clip["audio_filepath"]).resolve())
        clip["id"] = pathlib.Path(clip["audio_filepath"]).stem
    return clips


def open_judges(clips, references):
    """The judges that are installed; says which are not and what is lost."""
    makers = {"CER and WER": Recogniser, "MOS": Mos, "similarity": lambda: Similarity(references)}
    if clips[0].get("language", "en") != "en":
        print("skipped: CER and WER: there is no recogniser for this language", flush=True)
        del makers["CER and WER"]
    judges = []
    for metric, make in makers.items():
        try:
            judges.append(make())
        except ImportError as missing:
            print(f"skipped: {metric}: {missing} (pip install -r bench/requirements-voice.txt)", flush=True)
    return judges


def summary(rows):
    result = {}
    if "characters" in rows[0]:
        result["cer"] = sum(row["character_errors"] for row in rows) / sum(row["characters"] for row in rows)
        result["wer"] = sum(row["word_errors"] for row in rows) / sum(row["words"] for row in rows)
    for key in ("mos", "similarity", "pesq", "mcd"):
        if key in rows[0]:
            result[key] = float(np.mean([row[key] for row in rows]))
    return result


def shown(key, value):
    return f"{100 * value:.1f} %" if key in ("cer", "wer") else f"{value:.3f}" if key == "similarity" else f"{value:.2f}"


def print_table(kinds):
    keys = [key for key in METRICS if any(key in kind["means"] for kind in kinds.values())]
    width = max(map(len, kinds))
    print(" " * width + "".join(f"{METRICS[key]:>12}" for key in keys))
    for name, kind in kinds.items():
        print(f"{name:{width}}" + "".join(f"{shown(key, kind['means'][key]) if key in kind['means'] else '-':>12}" for key in keys))


def named(given):
    """NAME=PLACE of a command line, in two."""
    name, _, place = given.partition("=")
    if not name or not pathlib.Path(place).exists() or not place:
        raise argparse.ArgumentTypeError(f"{given} is not NAME=PLACE of something that exists")
    return name, place


def hardware():
    try:
        found = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    except OSError:
        found = ""
    return found or platform.machine()


def version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest", type=pathlib.Path, help="JSON lines: audio_filepath, text, language")
    parser.add_argument("--reference", type=pathlib.Path, help="manifest of the speaker's other clips, for similarity [the held-out ones]")
    parser.add_argument("--checkpoint", action="append", type=named, default=[], metavar="NAME=FOLDER")
    parser.add_argument("--vocoder", action="append", type=named, default=[], metavar="NAME=FILE", help="a vocoder, on the recordings' own mels")
    parser.add_argument("--preset", default="hifigan", help="of the recordings' own mels")
    parser.add_argument("--mels", action="append", type=named, default=[], metavar="NAME=FILE.npz", help="log-mels by clip, made audible by Griffin-Lim")
    parser.add_argument("--wavs", action="append", type=named, default=[], metavar="NAME=FOLDER", help="WAVs named after the clips, made elsewhere")
    parser.add_argument("--synth", default="", help="flags of `myxtts synth`")
    parser.add_argument("--clips", type=int, help="judge the first N only")
    parser.add_argument("--no-recordings", action="store_true", help="neither the recordings nor their Griffin-Lim")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--keep", type=pathlib.Path, help="keep three WAVs of each kind here")
    options = parser.parse_args()
    clips = read_manifest(options.manifest)[: options.clips]
    references = read_manifest(options.reference) if options.reference else clips
    judges = open_judges(clips, [clip["audio_filepath"] for clip in references[:40]])
    same_time = []
    with contextlib.suppress(ImportError):
        same_time = [Pesq()]
    kinds = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        true_cepstra = {clip["id"]: cepstra(clip["audio_filepath"], scratch) for clip in clips}

        def judge(name, paths, more_judges=()):
            began, rows = time.time(), []
            for clip, path in zip(clips, paths):
                samples, row = read_audio(path), {"id": clip["id"]}
                for judge in (*judges, *more_judges):
                    row |= judge.judge(samples, clip)
                row["mcd"] = float(distortion(cepstra(path, scratch), true_cepstra[clip["id"]]))
                rows.append(row)
            kinds[name] = {"means": summary(rows), "clips": rows}
            print(f"{name}: {len(rows)} clips judged in {time.time() - began:.0f} s", flush=True)
            for clip, path in list(zip(clips, paths))[:3] if options.keep else []:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name.replace(' ', '_')}-{clip['id']}.wav").write_bytes(pathlib.Path(path).read_bytes())

        if not options.no_recordings:
            judge("recordings", [clip["audio_filepath"] for clip in clips])
        for name, vocoder in [("griffin_lim", None)] * (not options.no_recordings) + options.vocoder:
            (scratch / name).mkdir()
            own = {clip["id"]: scratch / name / f"{clip['id']}.wav" for clip in clips}
            for clip in clips:
                run("mel", clip["audio_filepath"], scratch / "own.npy", "--preset", options.preset, "--resynth", own[clip["id"]],
                    *(["--vocoder", vocoder] if vocoder else []))
            judge(name, own.values(), same_time)
        for name, place in options.wavs:
            judge(name, [pathlib.Path(place) / f"{clip['id']}.wav" for clip in clips])
        for name, file in options.mels:
            (scratch / name).mkdir()
            mels = np.load(file)
            for clip in clips:
                np.save(scratch / "mel.npy", mels[clip["id"]].astype(np.float32))
                run("mel", scratch / "mel.npy", "--resynth", scratch / name / f"{clip['id']}.wav")
            judge(name, [scratch / name / f"{clip['id']}.wav" for clip in clips])
        for name, place in options.checkpoint:
            (scratch / "texts.txt").write_text("\n".join(clip["text"] for clip in clips) + "\n", encoding="utf-8")
            spoken = scratch / name
            spoken.mkdir()
            run("synth", "--checkpoint", place, "--text-file", scratch / "texts.txt", "--out", spoken / "w.wav", *shlex.split(options.synth))
            judge(name, sorted(spoken.glob("w-*.wav")))
    print_table(kinds)
    result = {
        "what": f"voices judged on {len(clips)} held-out texts of speaker {clips[0].get('speaker', '?')}",
        "held_out": [{"id": clip["id"], "text": clip["text"]} for clip in clips],
        "judges": [version(judge.package) for judge in (*judges, *same_time)],
        "synth": options.synth,
        "kinds": kinds,
        "hardware": hardware(),
        "commit": os.environ.get("MYXTTS_COMMIT", "unknown"),
        "date": time.strftime("%Y-%m-%d"),
        "command": "bench/voice_eval.py " + shlex.join(sys.argv[1:]),
    }
    options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
