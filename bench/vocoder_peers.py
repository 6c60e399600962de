"""Claims: a training step of the vocoder, both networks, costs no more than PyTorch's best (reduce-overhead); and it
speaks faster than the same network in PyTorch.

  python bench/vocoder_peers.py step [--device cuda] [--size base] [--kill-s 240] [--only TEXT] [--out FILE]
  python bench/vocoder_peers.py speak [--device cpu] [--size tiny] [--seconds 10] [--out FILE]

step: 16 rows x 16,384 samples at 24 kHz. Peers: the twin (bench/twin/vocoder.py), bf16 autocast, two fused AdamW,
clipping; eager, torch.compile, reduce-overhead (the losses of each network compiled as one function). Their input is on
the device already; the EMA of the generator is left out for them, ours has it. Metric: median ms from step to step by
CUDA events; spread: std / mean; limit: the convolutions and matrix products that PyTorch counts in the twin's step, at
--tflops. Each form has its own process, killed after --kill-s.
speak: one mel of --seconds through the generator, one CPU core or a GPU; median of repeats, in times real time.
MYXTTS names the program (default build/myxtts)."""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # otherwise cached code hides the time to compile

import numpy as np
import torch

from twin import vocoder as twin

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
ROWS, SAMPLES, RATE = 16, 16384, 24000
N_FFT, HOP, N_MELS = 1024, 256, 100
FORMS = {"PyTorch eager": None, "torch.compile": "default", "torch.compile reduce-overhead": "reduce-overhead"}


def make_vocoder(options):
    return twin.Vocoder(options.size, N_MELS, N_FFT, HOP, -(N_FFT - HOP) // 2, -5.0, 2.0).to(options.device)


class Trainer:
    def __init__(self, options, mode):
        torch.manual_seed(0)
        self.device, self.captured = options.device, mode == "reduce-overhead" and options.device == "cuda"
        self.generator, self.discriminators = make_vocoder(options), twin.Discriminators(twin.SIZES[options.size].narrower).to(options.device)
        self.conventions = [twin.Convention(c.n_fft, c.hop, c.first, c.filters.to(options.device)) for c in twin.full_band(RATE)]
        self.optimizers = [torch.optim.AdamW(part.parameters(), lr=1e-4, betas=(0.8, 0.9), fused=True) for part in (self.discriminators, self.generator)]
        self.losses = [self.of_discriminators, self.of_generator]
        if mode is not None:
            self.losses = [torch.compile(loss, mode=None if mode == "default" else mode) for loss in self.losses]

    def autocast(self):
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda")

    def of_discriminators(self, batch):
        with self.autocast():
            with torch.no_grad():
                made = self.generator(batch["mel"], SAMPLES)
            judged = self.discriminators(torch.cat([batch["samples"], made]))
        halves = [(score.chunk(2), None) for score, _ in judged]
        return twin.discriminator_loss([(h[0], None) for h, _ in halves], [(h[1], None) for h, _ in halves])

    def of_generator(self, batch):
        with self.autocast():
            made = self.generator(batch["mel"], SAMPLES)
            with torch.no_grad():
                of_real = self.discriminators(batch["samples"])
            of_made = self.discriminators(made)
        return twin.generator_losses(made, batch["samples"], batch["valid"], of_real, of_made, self.conventions)["loss"]

    def step(self, batch):
        for loss, optimizer, part in zip(self.losses, self.optimizers, (self.discriminators, self.generator)):
            if self.captured:
                torch.compiler.cudagraph_mark_step_begin()
            part.requires_grad_(True)
            other = self.generator if part is self.discriminators else self.discriminators
            other.requires_grad_(False)
            value = loss(batch)
            value.backward()
            torch.nn.utils.clip_grad_norm_(part.parameters(), 5.0, foreach=True)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return value.detach().clone()


def make_batch(device):
    generator = torch.Generator().manual_seed(1)
    batch = {"samples": torch.randn((ROWS, SAMPLES), generator=generator) * 0.1,
             "mel": torch.randn((ROWS, SAMPLES // HOP, N_MELS), generator=generator) * 2 - 5, "valid": torch.ones(ROWS)}
    return {name: value.to(device) for name, value in batch.items()}


def counted_flop(options):
    from torch.utils.flop_counter import FlopCounterMode

    trainer, batch = Trainer(options, None), make_batch(options.device)
    with FlopCounterMode(display=False) as counter:
        trainer.step(batch)
    return counter.get_total_flops()


def timed_steps(options, form):
    """In a form's own process."""
    torch.set_float32_matmul_precision("high")
    trainer, batch = Trainer(options, FORMS[form]), make_batch(options.device)
    start = time.perf_counter()
    for _ in range(options.warm_up):
        loss = trainer.step(batch)
    loss = float(loss)
    warm_s = time.perf_counter() - start
    on_gpu, marks = options.device == "cuda", []

    def mark():
        marks.append(torch.cuda.Event(enable_timing=True) if on_gpu else time.perf_counter())
        if on_gpu:
            marks[-1].record()

    mark()
    for _ in range(options.steps):
        loss = trainer.step(batch)
        mark()
    loss = float(loss)
    if not np.isfinite(loss):
        raise RuntimeError(f"the loss is {loss}")
    steps = [a.elapsed_time(b) if on_gpu else (b - a) * 1e3 for a, b in zip(marks, marks[1:])]
    result = {"figure": float(np.median(steps)), "unit": "ms", "cv": float(np.std(steps) / np.mean(steps)), "warm_up_s": warm_s, "steps": len(steps)}
    if on_gpu:
        result["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return result


def apart(options, form):
    command = [sys.executable, __file__, "step", "--device", options.device, "--size", options.size, "--steps", str(options.steps),
               "--warm-up", str(options.warm_up), "--form", form]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.kill_s)
    except subprocess.TimeoutExpired:
        return {"stopped": f"after {options.kill_s} s"}
    if done.returncode != 0:
        return {"failed": "\n".join(done.stderr.strip().splitlines()[-3:])[-300:]}
    return json.loads(done.stdout.splitlines()[-1])


def ours(*command):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([PROGRAM, "bench", *command, "--json", out.name], check=True, stdout=subprocess.DEVNULL)
        return json.load(open(out.name))


def device_flag(options):
    return "cuda:0" if options.device == "cuda" else "cpu"


def hardware(options):
    return torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()}, {options.threads} threads"


def race_steps(options):
    limit = counted_flop(options) / options.tflops / 1e9
    result = {"what": f"a step of the vocoder {options.size}, {ROWS} x {SAMPLES} samples at {RATE} Hz", "hardware": hardware(options),
              "limit_ms": limit, "limit_is": f"convolutions and matrix products at {options.tflops:g} TFLOP/s",
              "ours": ours("step", "--target", "vocoder", "--model-size", options.size, "--batch-size", str(ROWS), "--device", device_flag(options),
                           *(() if options.device == "cuda" else ("--repeats", "3", "--steps", "1"))), "peers": {}}
    print(f"{result['what']}, on {result['hardware']}\n{'':34}{'ms':>9}{'cv':>8}{'of limit':>10}")
    own = result["ours"]
    print(f"{'ours':34}{own['figure']:9.2f}{own['cv']:8.1%}{limit / own['figure']:10.1%}", flush=True)
    for form in FORMS:
        if options.only and options.only not in form:
            continue
        peer = result["peers"][form] = apart(options, form)
        if "figure" in peer:
            peer["ours_is_times_faster"] = peer["figure"] / own["figure"]
            print(f"{form:34}{peer['figure']:9.2f}{peer['cv']:8.1%}{limit / peer['figure']:10.1%}   ours is {peer['ours_is_times_faster']:.2f} x", flush=True)
        else:
            print(f"{form:34}{peer}", flush=True)
        write(result, options)


def race_speaking(options):
    own = ours("vocoder", "--model-size", options.size, "--seconds", str(options.seconds), "--threads", str(options.threads),
               "--repeats", str(options.repeats), "--device", device_flag(options), "--preset", "bigvgan_24k")
    torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high")
    generator = make_vocoder(options).eval()
    frames = round(options.seconds * RATE / HOP)
    mel = torch.randn((1, frames, N_MELS), device=options.device) * 2 - 5
    times = []
    with torch.inference_mode():
        for repeat in range(options.repeats + 2):
            start = time.perf_counter()
            generator(mel, frames * HOP)
            if options.device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    times = times[2:]
    peer = {"figure": options.seconds / float(np.median(times)), "unit": "x real time", "cv": float(np.std(times) / np.mean(times))}
    result = {"what": f"the vocoder {options.size} speaks {options.seconds:g} s at {RATE} Hz", "hardware": hardware(options), "ours": own,
              "peers": {"PyTorch eager": {**peer, "ours_is_times_faster": own["figure"] / peer["figure"]}}}
    print(f"{result['what']}, on {result['hardware']}: ours {own['figure']:.0f} x real time, PyTorch {peer['figure']:.0f} x")
    write(result, options)


def write(result, options):
    if options.out:
        with open(options.out, "w") as file:
            json.dump(result, file, indent=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("step", "speak"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cuda", "cpu"))
    parser.add_argument("--size", default="base", choices=tuple(twin.SIZES))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--tflops", type=float, default=790)
    parser.add_argument("--kill-s", type=float, default=240)
    parser.add_argument("--only", default="")
    parser.add_argument("--form", choices=tuple(FORMS), help=argparse.SUPPRESS)
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.form:
        print(json.dumps(timed_steps(options, options.form)))
    elif options.part == "step":
        race_steps(options)
    else:
        race_speaking(options)


if __name__ == "__main__":
    main()
