"""Claim: from files to padded log-mel batches on the GPU, every batch consumed, at least 1,000,000 x real time with
separate files, 400,000 x with 4 workers, 1,100,000 x from a packed corpus with at most 2 CPU cores.

  python bench/loader_peers.py [--device cuda] [--clips 1500] [--out FILE] [--no-peers]

Corpus: noise with LJSpeech-like lengths (normal, mean 6.57 s, std 2.2, 1.1 to 10.1 s), 22,050 Hz PCM16, in the page cache.
Before and after: one consumer (10 ms per batch on a GPU, 20 ms on the CPU) on the slow path and on the native loader: mean,
std/mean, and the share of time it waits for input.
Peers, same files, same batch size, one run: torch's DataLoader with torchaudio's mel on the CPU or the GPU.
Spread: coefficient of variation over epochs. Limit: 16-bit samples at the measured PCIe bandwidth.
MYXTTS names the program (default build/myxtts)."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
BATCH = 16


def make_corpus(folder, clips):
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.normal(6.57, 2.2, clips), 1.1, 10.1)
    (folder / "wavs").mkdir(parents=True)
    rows = []
    for i, length in enumerate(lengths):
        samples = (rng.standard_normal(int(length * 22050)) * 3000).astype(np.int16)
        with wave.open(str(folder / "wavs" / f"{i:05d}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(22050)
            file.writeframes(samples.tobytes())
        rows.append(f"{i:05d}|{'some words of a text ' * max(1, int(length / 2))}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return float(lengths.sum())


def ours(corpus, *arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        size = [] if "--batch-size" in arguments else ["--batch-size", BATCH]
        command = [PROGRAM, "bench", "loader", "--train-data", corpus, *size, *arguments, "--json", out.name]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.load(open(out.name))


def peers(folder, seconds, device, epochs=4):
    try:
        import torch
        import torchaudio
    except ImportError as missing:
        print(f"skipped the peers: {missing}")
        return {}

    torch.set_num_threads(1)
    paths = sorted((folder / "wavs").iterdir())

    def transform(where):
        return torchaudio.transforms.MelSpectrogram(22050, 1024, 1024, 256, n_mels=80, norm="slaney", mel_scale="slaney", power=1.0).to(where)

    class Clips(torch.utils.data.Dataset):
        def __init__(self, with_mel):
            self.mel = transform("cpu") if with_mel else None

        def __len__(self):
            return len(paths)

        def __getitem__(self, i):
            with wave.open(str(paths[i]), "rb") as file:
                x = torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16).float() / 32768
            return torch.log(self.mel(x) + 1e-5) if self.mel else x

    def pad(rows):
        out = torch.zeros(len(rows), *rows[0].shape[:-1], max(x.shape[-1] for x in rows))
        for i, x in enumerate(rows):
            out[i, ..., : x.shape[-1]] = x
        return out

    results = {}
    on_gpu = device == "cuda"
    forms = [("DataLoader, 0 workers, torchaudio mel on the CPU", True, 0)]
    forms += [(f"DataLoader, {n} workers, torchaudio mel on the CPU", True, n) for n in sorted({min(8, os.cpu_count()), os.cpu_count()})]
    if on_gpu:
        forms += [(f"DataLoader, {os.cpu_count()} workers reading, torchaudio mel on the GPU", False, os.cpu_count())]
    for name, cpu_mel, workers in forms:
        loader = torch.utils.data.DataLoader(Clips(cpu_mel), batch_size=BATCH, num_workers=workers, collate_fn=pad, pin_memory=on_gpu,
                                             persistent_workers=workers > 0, prefetch_factor=4 if workers else None, shuffle=True)
        mel = None if cpu_mel else transform("cuda")
        rates = []
        for epoch in range(epochs if workers else 2):
            start = time.perf_counter()
            for batch in loader:
                if on_gpu:
                    batch = batch.cuda(non_blocking=True)
                if mel:
                    batch = torch.log(mel(batch) + 1e-5)
            if on_gpu:
                torch.cuda.synchronize()
            if epoch:
                rates.append(seconds / (time.perf_counter() - start))
        results[name] = {"figure": float(np.median(rates)), "cv": float(np.std(rates) / np.mean(rates))}
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--clips", type=int, default=1500)
    parser.add_argument("--out")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="myxtts_bench_"))
    try:
        seconds = make_corpus(root / "corpus", options.clips)
        subprocess.run([PROGRAM, "prepare", root / "corpus", "--pack", root / "packed"], check=True, capture_output=True)
        forms = {}
        (root / "slow.yaml").write_text("data: {use_native_loading: false}\n")
        slow = ["--config", root / "slow.yaml"]
        if options.device == "cuda":
            gpu = ["--device", "cuda:0"]
            uncached = [*gpu, "--gpu-cache-mb", 0, "--host-cache-mb", 0]  # so that every epoch reads every file
            forms["separate files, every core"] = (root / "corpus", [*uncached, "--repeats", 30])
            forms["separate files, 4 workers"] = (root / "corpus", [*uncached, "--num-workers", 4, "--repeats", 20])
            forms["packed and registered, 1 worker"] = (root / "packed", [*uncached, "--num-workers", 1, "--repeats", 30])
            forms["kept in pinned memory"] = (root / "corpus", [*gpu, "--gpu-cache-mb", 0, "--host-cache-mb", 4096, "--repeats", 30])
            forms["cached on the GPU"] = (root / "corpus", [*gpu, "--gpu-cache-mb", 4096, "--repeats", 30])
            forms["cached on the GPU, batches of 64"] = (root / "corpus", [*gpu, "--gpu-cache-mb", 4096, "--repeats", 30, "--batch-size", 64])
            two = ["--data-gpu", 0, "--model-gpu", 0, "--model-start-delay", 0, "--gpu-cache-mb", 0, "--host-cache-mb", 0]
            forms["Multi-GPU mode on one card"] = (root / "corpus", [*two, "--repeats", 20])
            forms["a consumer of 10 ms, slow path"] = (root / "corpus", [*gpu, "--consumer-ms", 10, "--repeats", 3, *slow])
            forms["a consumer of 10 ms, native"] = (root / "corpus", [*uncached, "--consumer-ms", 10, "--repeats", 11])
        else:
            forms["separate files, every core"] = (root / "corpus", ["--device", "cpu", "--repeats", 3])
            forms["the slow path"] = (root / "corpus", ["--device", "cpu", "--repeats", 3, *slow])
            forms["a consumer of 20 ms, slow path"] = (root / "corpus", ["--device", "cpu", "--consumer-ms", 20, "--repeats", 3, *slow])
            forms["a consumer of 20 ms, native"] = (root / "corpus", ["--device", "cpu", "--consumer-ms", 20, "--repeats", 3])
        results = {name: ours(corpus, *arguments) for name, (corpus, arguments) in forms.items()}
        others = {} if options.no_peers else peers(root / "corpus", seconds, options.device)
    finally:
        shutil.rmtree(root)
    print(f"{'':44}{'x real time':>12}{'cv':>7}{'input wait':>12}{'CPU cores':>11}{'ms per batch':>12}{'spread':>8}")
    for name, result in results.items():
        print(f"{name:44}{result['figure']:12,.0f}{result['cv']:7.1%}{result['input_wait']:12.2%}{result['cpu_cores_used']:11.1f}{result['batch_ms']:12.2f}{result['batch_ms_cv']:8.2f}")
    before, after = ([result for name, result in results.items() if name.startswith("a consumer") and name.endswith(end)][0] for end in ("slow path", "native"))
    print(f"\nthe same consumer, before (slow path) and after (native): {before['batch_ms']:.2f} -> {after['batch_ms']:.2f} ms per batch, "
          f"std/mean {before['batch_ms_cv']:.2f} -> {after['batch_ms_cv']:.2f}, waiting for input {before['input_wait']:.1%} -> {after['input_wait']:.2%}\n")
    best = results["separate files, every core"]["figure"]
    print(f"{'the limit':44}{results['separate files, every core']['limit']:12,.0f}")
    for name, result in others.items():
        result["ours_is_times_faster"] = best / result["figure"]
        print(f"{name:56}{result['figure']:12,.0f}{result['cv']:7.1%}   ours is {result['ours_is_times_faster']:.0f} x")
    if options.out:
        commit = os.environ.get("MYXTTS_COMMIT") or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        json.dump({"claim": "from files to log-mel batches, in times real time", "command": f"python bench/loader_peers.py --device {options.device} --clips {options.clips}",
                   "hardware": results["separate files, every core"]["device"], "cores": os.cpu_count(), "machine": platform.machine(), "commit": commit,
                   "date": datetime.date.today().isoformat(), "corpus": f"{options.clips} clips of noise, {seconds / 3600:.2f} h, LJSpeech-like lengths",
                   "batch_size": BATCH, "myxtts": results, "peers": others}, open(options.out, "w"), indent=2)


main()
