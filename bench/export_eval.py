#!/usr/bin/env python3
"""An exported voice in sherpa-onnx: how fast it speaks, what smaller weights change, and whether it is understood as well
as by `myxtts synth`.

    bench/export_eval.py --checkpoint VOICE [--vocoder FILE] [--held-out MANIFEST] [--threads 2] --out RESULT.json

  speed       real-time factor of sherpa-onnx (processing time per second of sound, phonemes at hand) for a sentence of 16
              words, median of the repeats after a warm-up, for each precision; beside it `myxtts bench synth`
  precision   distance of the float16 and int8 log-mel from the float32 one, same noise, in onnxruntime
  CER         of 20 texts of the manifest by sherpa-onnx and by synth; moonshine-voice judges, English alone
Needs onnx, onnxruntime and sherpa-onnx 2 (tools/requirements-tests.txt) and espeak-ng. Peer: Piper's published real-time
factor of 0.36 on a Raspberry Pi 4, another machine. Spread: the coefficient of variation is in the result."""
import argparse
import importlib.util
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import sherpa_onnx

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from voice_eval import Recogniser, read_audio, read_manifest, run, summary, version  # noqa: E402

MORE = {"en": ["Good morning, how are you?", "The river is cold; the water is deep.", "What did you see there?", "She came home late.",
               "Bring the lamp, the book and the bread.", "It was a long and quiet evening by the sea.", "No! Wait for me."],
        "fa": ["سلام، حال شما چطور است؟", "آب رودخانه سرد است.", "او دیر به خانه آمد.", "چراغ و کتاب را بیاور."]}
SENTENCES = {"en": "The quick brown fox jumps over the lazy dog, and then it rests for a while.",
             "fa": "امروز هوا خوب است و ما با هم به بازار می‌رویم، چون نان و شیر می‌خواهیم."}
PRECISIONS = ("float32", "float16", "int8")


def phonemes_of(folder):
    """phonemes.py of an exported folder."""
    spec = importlib.util.spec_from_file_location("phonemes", folder / "phonemes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_voice(folder, threads, noise_scale=0.333):
    matcha = sherpa_onnx.OfflineTtsMatchaModelConfig(
        acoustic_model=str(folder / "model.onnx"), vocoder=str(folder / "vocoder.onnx"), tokens=str(folder / "tokens.txt"),
        noise_scale=noise_scale)
    return sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(
        model=sherpa_onnx.OfflineTtsModelConfig(matcha=matcha, num_threads=threads)))


def speed(folder, text, threads, repeats):
    began = time.perf_counter()
    voice = open_voice(folder, threads)
    load_s = time.perf_counter() - began
    request = phonemes_of(folder).request(text)
    factors = []
    for _ in range(repeats + 2):
        began = time.perf_counter()
        audio = voice.generate("", request)
        factors.append((time.perf_counter() - began) * audio.sample_rate / len(audio.samples))
    factors = factors[2:]
    return {"real_time_factor": statistics.median(factors), "fastest": min(factors), "cv": statistics.stdev(factors) / statistics.mean(factors),
            "repeats": repeats, "sound_s": len(audio.samples) / audio.sample_rate, "load_s": load_s,
            "megabytes": sum((folder / name).stat().st_size for name in ("model.onnx", "vocoder.onnx")) / 1e6}


def mel_of(folder, tokens, noise):
    """The log-mel of tokens with given noise, of which there is more than enough."""
    model = onnx.load(folder / "model.onnx")
    node = next(node for node in model.graph.node if node.op_type == "RandomNormalLike")
    shaped_like, name = node.input[0], node.output[0]
    model.graph.node.remove(node)
    model.graph.input.append(onnx.helper.make_tensor_value_info("noise", onnx.TensorProto.FLOAT, ["frames", "mels"]))
    cut = [onnx.helper.make_node("Shape", [shaped_like], ["noise_shape"]),
           onnx.helper.make_node("ConstantOfShape", ["noise_rank"], ["noise_first"],
                                 value=onnx.numpy_helper.from_array(np.zeros(1, np.int64))),
           onnx.helper.make_node("Slice", ["noise", "noise_first", "noise_shape"], [name])]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2]), "noise_rank"))
    at = next(i for i, other in enumerate(model.graph.node) if name in other.input)
    for node in reversed(cut):
        model.graph.node.insert(at, node)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {"x": tokens[None], "x_length": np.array([len(tokens)]), "noise_scale": np.array([0.333], np.float32),
             "length_scale": np.array([1], np.float32), "noise": noise, "sid": np.array([0])}
    names = {wanted.name for wanted in session.get_inputs()}
    return session.run(None, {key: value for key, value in given.items() if key in names})[0][0].T


def tokens_of(folder, text):
    numbers = {}
    for line in (folder / "tokens.txt").read_text(encoding="utf-8").splitlines():
        symbol, number = line.rsplit(" ", 1)
        numbers[symbol or " "] = int(number)
    known = [numbers[phoneme] for phoneme in phonemes_of(folder).phonemes(text) if phoneme in numbers]
    tokens = np.ones(2 * len(known) + 1, np.int64)
    tokens[1::2] = known
    return tokens


def distances(folders, texts):
    """Of each precision from float32, over the texts whose durations are the same."""
    noise = np.random.default_rng(1).standard_normal((20_000, 80)).astype(np.float32)
    tokens = [tokens_of(folders["float32"], text) for text in texts]
    exact = [mel_of(folders["float32"], each, noise) for each in tokens]
    result = {"float32_mel_std": float(np.concatenate(exact).std())}
    for precision in PRECISIONS[1:]:
        mels = [mel_of(folders[precision], each, noise) for each in tokens]
        pairs = [(one, other) for one, other in zip(exact, mels) if one.shape == other.shape]
        differences = np.concatenate([np.abs(one - other).ravel() for one, other in pairs]) if pairs else np.zeros(0)
        result[precision] = {"texts": len(texts), "texts_with_the_same_durations": len(pairs),
                             "mean_frames_more_or_less": float(np.mean([abs(len(one) - len(other)) for one, other in zip(exact, mels)])),
                             "mean_mel_distance": float(differences.mean()) if pairs else None,
                             "largest_mel_distance": float(differences.max()) if pairs else None}
    return result


def errors(options, folder, clips, scratch):
    """CER and WER of the same texts by sherpa-onnx and by synth."""
    judge = Recogniser()
    voice, script = open_voice(folder, options.threads), phonemes_of(folder)
    (scratch / "texts.txt").write_text("\n".join(clip["text"] for clip in clips) + "\n", encoding="utf-8")
    run("synth", "--checkpoint", options.checkpoint, "--text-file", scratch / "texts.txt", "--out", scratch / "synth.wav",
        *(["--vocoder", options.vocoder] if options.vocoder else []))
    rows = {"sherpa-onnx": [], "synth": []}
    for clip, own in zip(clips, sorted(scratch.glob("synth-*.wav"))):
        audio = voice.generate("", script.request(clip["text"]))
        sherpa_onnx.write_wave(str(scratch / "sherpa.wav"), audio.samples, audio.sample_rate)
        rows["sherpa-onnx"].append(judge.judge(read_audio(scratch / "sherpa.wav"), clip))
        rows["synth"].append(judge.judge(read_audio(own), clip))
    return {name: summary(judged) for name, judged in rows.items()} | {"judge": version(Recogniser.package), "texts": len(clips)}


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--vocoder", type=pathlib.Path)
    parser.add_argument("--language", default="en", choices=SENTENCES)
    parser.add_argument("--held-out", type=pathlib.Path, help="manifest whose first 20 texts are spoken and recognised")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--note", default="", help="what a reader must know of the voice")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    text = SENTENCES[options.language]
    clips = read_manifest(options.held_out)[:20] if options.held_out else []
    result = {"what": "an exported voice in sherpa-onnx", "note": options.note, "text": text, "threads": options.threads,
              "peer": "Piper, published: real-time factor 0.36 on a Raspberry Pi 4"}
    with tempfile.TemporaryDirectory() as place:
        scratch = pathlib.Path(place)
        folders = {precision: scratch / precision for precision in PRECISIONS}
        for precision, folder in folders.items():
            run("export", "--checkpoint", options.checkpoint, "--out", folder, "--precision", precision, "--language", options.language,
                *(["--vocoder", options.vocoder] if options.vocoder else []))
        result["speed"] = {precision: speed(folder, text, options.threads, options.repeats) for precision, folder in folders.items()}
        run("bench", "synth", "--checkpoint", options.checkpoint, "--text", text, "--json", scratch / "synth.json",
            *(["--vocoder", options.vocoder] if options.vocoder else []))
        own = json.loads((scratch / "synth.json").read_text())
        result["speed"]["synth"] = {"real_time_factor": 1 / own["figure"], "with_phonemes": True, "repeats": own["repeats"], "cv": own["cv"]}
        result["precision"] = distances(folders, [clip["text"] for clip in clips] or [text, *MORE[options.language]])
        if clips:
            result["errors"] = errors(options, folders["float32"], clips, scratch)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    result |= {"hardware": f"{cpu_name()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}", "commit": commit,
               "date": time.strftime("%Y-%m-%d"), "command": shlex.join(["bench/export_eval.py", *sys.argv[1:]]),
               "versions": [version(name) for name in ("sherpa-onnx", "onnxruntime")]}
    options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({key: result[key] for key in ("speed", "precision") if key in result}, indent=1))


if __name__ == "__main__":
    main()
