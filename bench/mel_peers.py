"""Log-mel against its peers, side by side in one run.

Claim:    on one CPU thread at least 2 x torch's own STFT-based mel (or torchaudio, if installed) and 5 x librosa;
          on an H200 at least 10,000,000 x real time, batch 64 x 8 s, PCM16 in device memory to padded float32 log-mel.
Command:  python bench/mel_peers.py [--device cpu|cuda] [--out FILE.json]
Peers:   torchaudio, torch.stft, librosa on the CPU; torchaudio and torch.compile of it on the GPU.
Spread:   median and coefficient of variation of --repeats runs, warm-up first. Limit: printed by `myxtts bench mel`.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
RATE, N_FFT, HOP, MELS, LOW, HIGH = 22050, 1024, 256, 80, 0.0, 8000.0


def mel_matrix():
    """Slaney's filters, so that no peer needs librosa."""
    to_mel = lambda hz: np.where(hz < 1000, hz * 3 / 200, 15 + np.log(np.maximum(hz, 1e-9) / 1000) / (np.log(6.4) / 27))
    to_hz = lambda mel: np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))
    edges = to_hz(np.linspace(to_mel(np.array(LOW)), to_mel(np.array(HIGH)), MELS + 2))
    bins = np.arange(N_FFT // 2 + 1) * RATE / N_FFT
    up = (bins[None] - edges[:-2, None]) / np.diff(edges)[:-1, None]
    down = (edges[2:, None] - bins[None]) / np.diff(edges)[1:, None]
    return torch.tensor(np.maximum(0, np.minimum(up, down)) * (2 / (edges[2:] - edges[:-2]))[:, None], dtype=torch.float32)


def torch_mel(device):
    filters, window = mel_matrix().to(device), torch.hann_window(N_FFT, device=device)

    def run(x):
        padded = torch.nn.functional.pad(x[:, None], ((N_FFT - HOP) // 2,) * 2, mode="reflect")[:, 0]
        spectrum = torch.view_as_real(torch.stft(padded, N_FFT, HOP, N_FFT, window, center=False, return_complex=True))
        return torch.log(torch.clamp(filters @ torch.sqrt(spectrum.pow(2).sum(-1) + 1e-9), min=1e-5))

    return run


def torchaudio_mel(device):
    import torchaudio

    mel = torchaudio.transforms.MelSpectrogram(
        RATE, N_FFT, N_FFT, HOP, n_mels=MELS, f_min=LOW, f_max=HIGH, norm="slaney", mel_scale="slaney", power=1.0
    ).to(device)
    return lambda x: torch.log(torch.clamp(mel(x), min=1e-5))


def librosa_mel():
    import librosa

    def run(x):
        for clip in x:
            mel = librosa.feature.melspectrogram(
                y=clip, sr=RATE, n_fft=N_FFT, hop_length=HOP, n_mels=MELS, fmin=LOW, fmax=HIGH, power=1.0
            )
            np.log(np.maximum(mel, 1e-5))

    return run


def cpu_clock(run, x, repeats):
    for _ in range(3):
        run(x)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - start)
    return times


def gpu_clock(run, x, repeats, inner=20):
    for _ in range(5):
        run(x[0])
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    times = []
    for _ in range(repeats):
        begin.record()
        for i in range(inner):
            run(x[i % len(x)])
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / inner)
    return times


def ours(device, clips, seconds, repeats):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        binary = os.environ.get("MYXTTS", ROOT / "build" / "myxtts")
        command = [binary, "bench", "mel", "--device", device, "--clips", clips, "--seconds", seconds, "--repeats", repeats]
        subprocess.run([*map(str, command), "--json", out.name], check=True)
        return json.load(open(out.name))


def commit():
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip() or os.environ.get("MYXTTS_COMMIT", "unknown")


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--repeats", type=int, default=30)
    options.add_argument("--out", type=pathlib.Path)
    asked = options.parse_args()
    gpu = asked.device == "cuda"
    clips, seconds = (64, 8) if gpu else (8, 8)
    rng = np.random.default_rng(0)
    peers = {}
    if gpu:
        x = [torch.tensor(rng.normal(0, 0.1, (clips, RATE * seconds)), dtype=torch.float32, device="cuda") for _ in range(4)]
        peers["torch.stft"] = gpu_clock(torch_mel("cuda"), x, asked.repeats)
        try:
            mel = torchaudio_mel("cuda")
            peers["torchaudio"] = gpu_clock(mel, x, asked.repeats)
            peers["torch.compile of torchaudio"] = gpu_clock(torch.compile(mel), x, asked.repeats)
        except ImportError:
            print("torchaudio is not installed: skipped", file=sys.stderr)
        hardware = torch.cuda.get_device_name(0)
    else:
        torch.set_num_threads(1)
        x = torch.tensor(rng.normal(0, 0.1, (clips, RATE * seconds)), dtype=torch.float32)
        # Clip by clip: on one thread that is faster for torch than a batch.
        by_clip = lambda run: lambda x: [run(clip[None]) for clip in x]
        peers["torch.stft"] = cpu_clock(by_clip(torch_mel("cpu")), x, asked.repeats)
        try:
            peers["torchaudio"] = cpu_clock(by_clip(torchaudio_mel("cpu")), x, asked.repeats)
        except ImportError:
            print("torchaudio is not installed: torch.stft is the baseline", file=sys.stderr)
        try:
            peers["librosa"] = cpu_clock(librosa_mel(), x.numpy(), asked.repeats)
        except ImportError:
            print("librosa is not installed: skipped", file=sys.stderr)
        hardware = f"{cpu_name()}, one thread"
    own = ours("cuda:0" if gpu else "cpu", clips, seconds, asked.repeats)
    report = {
        "claim": "log-mel, preset hifigan, in times real time",
        "command": "python " + " ".join(sys.argv),
        "hardware": hardware,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "torch": torch.__version__,
        "batch": f"{clips} x {seconds} s",
        "myxtts": own,
        "peers": {},
    }
    print(f"\n{'':32} {'x real time':>14} {'cv':>7} {'ours is':>9}")
    print(f"{'MyXTTS':32} {own['figure']:14,.0f} {100 * own['cv']:6.1f}%")
    for name, times in peers.items():
        figure = clips * seconds / float(np.median(times))
        cv = float(np.std(times) / np.mean(times))
        report["peers"][name] = {"figure": figure, "cv": cv, "ours_is_times_faster": own["figure"] / figure}
        print(f"{name:32} {figure:14,.0f} {100 * cv:6.1f}% {own['figure'] / figure:8.1f}x")
    if asked.out:
        asked.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
