"""myxtts.Loader against a PyTorch DataLoader, in a loop of PyTorch's.

Claim:    on an H200 at least 30 x the batches per second of a DataLoader with 16 workers, nothing else in the loop; with
          a step of 10 ms less than 0.1 % of the time is spent waiting for input.
Command:  python bench/python_loader.py [--device cpu|cuda:0] [--clips N] [--workers N] [--out FILE.json]
Peer:     torch.utils.data.DataLoader over the same WAV files: read with `wave`, log-mel by torch.stft in the worker
          processes, padded to the longest clip, pinned and copied to the GPU. Both give float32 log-mel.
Spread:   median and coefficient of variation of --repeats epochs, after at least 100 batches that empty what was ready.
Limit:    what `myxtts bench loader` reaches with the same corpus and device, in C++.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np
import torch

import myxtts
from myxtts.torch import tensors

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "examples" / "python")]
from mel_peers import commit, cpu_name, torch_mel  # noqa: E402
from train_step import CapturedStep, Denoiser  # noqa: E402

RATE, BATCH = 22050, 16


def make_corpus(folder, clips):
    """Noise with lengths like LJSpeech's, 16-bit WAV."""
    rng = np.random.default_rng(0)
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    lines = []
    for number, seconds in enumerate(np.clip(rng.normal(6.57, 2.2, clips), 1.1, 10.1)):
        with wave.open(str(folder / "wavs" / f"n{number:05d}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
            file.writeframes((rng.standard_normal(int(seconds * RATE)) * 3000).astype(np.int16).tobytes())
        lines.append(f"n{number:05d}|noise|noise")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Clips(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted((folder / "wavs").glob("*.wav"))
        self.mel = torch_mel("cpu")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        with wave.open(str(self.files[number])) as file:
            samples = torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16).float() / 32768
        return self.mel(samples[None])[0].T


def collate(mels):
    lengths = torch.tensor([len(mel) for mel in mels], dtype=torch.int32)
    return {"mel": torch.nn.utils.rnn.pad_sequence(mels, batch_first=True), "mel_lengths": lengths}


def peer_batches(loader, device):
    for batch in loader:
        yield {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


def run_epochs(epoch, step, device, repeats):
    """Batches per second of each epoch, and the share of the time that was waiting for the next one."""
    rates, waited, whole, warm_up = [], 0.0, 0.0, 100
    while len(rates) < repeats:
        count, waits = 0, 0.0
        source, start = iter(epoch()), time.perf_counter()
        while True:
            batch = None  # letting go of the last one is no waiting
            asked = time.perf_counter()
            batch = next(source, None)
            waits += time.perf_counter() - asked
            if batch is None:
                break
            step(batch)
            count += 1
        if device != "cpu":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if warm_up > 0:
            warm_up -= count
            continue
        rates.append(count / seconds)
        waited, whole = waited + waits, whole + seconds
    return {
        "batches_per_s": statistics.median(rates),
        "cv": statistics.pstdev(rates) / statistics.mean(rates),
        "input_wait": waited / whole,
    }


def run_ours(loader, step, device, repeats):
    """The same, and the seconds that the loader itself counts as waited for it, warm-up included."""
    before = loader.stats()["consumer_waits_s"]
    measured = run_epochs(lambda: loader, step, device, repeats)
    return measured | {"consumer_waits_s": loader.stats()["consumer_waits_s"] - before}


def limit_of(folder, device):
    """Batches per second of the loader alone, without Python."""
    binary = os.environ.get("MYXTTS", ROOT / "build" / "myxtts")
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [binary, "bench", "loader", "--train-data", folder, "--batch-size", str(BATCH), "--device", device, "--json", out.name]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
        return 1e3 / json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))["batch_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--clips", type=int, default=1500)
    parser.add_argument("--workers", type=int, default=16, help="of the DataLoader")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", help="write the result as JSON")
    options = parser.parse_args()
    device, result = options.device, {}
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2) if device == "cpu" else 1)

    def pause(_):
        time.sleep(0.010)

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_corpus(folder, options.clips)
        peer = torch.utils.data.DataLoader(
            Clips(folder), BATCH, True, num_workers=options.workers, collate_fn=collate, drop_last=True,
            pin_memory=device != "cpu", persistent_workers=options.workers > 0,
        )
        with myxtts.Loader(folder, batch_size=BATCH, device=device) as loader:
            loops = {"nothing": tensors, "10 ms": pause, "example": CapturedStep(Denoiser(mels=80).to(device))}
            ours = {name: run_ours(loader, step, device, options.repeats) for name, step in loops.items()}
        loops = {"nothing": lambda batch: None, "10 ms": pause, "example": CapturedStep(Denoiser(mels=80).to(device)).step}
        theirs = {name: run_epochs(lambda: peer_batches(peer, device), step, device, options.repeats) for name, step in loops.items()}
        result["limit_batches_per_s"] = limit_of(folder, device)
    result["loader"], result["data_loader"] = ours, theirs
    result["ratio"] = {name: ours[name]["batches_per_s"] / theirs[name]["batches_per_s"] for name in ours}
    result["what"] = f"batches of {BATCH} clips in a loop of PyTorch's, {options.clips} clips of noise, DataLoader with {options.workers} workers"
    result["device"] = torch.cuda.get_device_name(device) if device != "cpu" else f"{os.cpu_count()} CPU cores, {cpu_name()}"
    result["torch"], result["myxtts"] = torch.__version__, myxtts.__version__
    result["date"] = datetime.date.today().isoformat()
    result["commit"] = commit()
    result["command"] = "python " + " ".join([str(pathlib.Path("bench") / "python_loader.py"), *sys.argv[1:]])
    for name in ours:
        print(f"{name:8} ours {ours[name]['batches_per_s']:9.1f} batches/s, waits {100 * ours[name]['input_wait']:6.2f} %   DataLoader "
              f"{theirs[name]['batches_per_s']:8.1f}, waits {100 * theirs[name]['input_wait']:6.2f} %   {result['ratio'][name]:6.1f} x")
    if result["limit_batches_per_s"]:
        print(f"limit    {result['limit_batches_per_s']:.1f} batches/s: the loader without Python")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
