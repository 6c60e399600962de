"""Claim: our training learns as the same voice in PyTorch does, and a captured step computes what an
uncaptured step computes.

  python bench/loss_curves.py [--device cuda:0] [--size small] [--steps 500] [--out FILE.json] [--svg FILE.svg]

Curves: the loss of every step, from the same weights, on the same batches, with the same learning rates:
  captured   ours in bfloat16 with fused kernels, captured (on a GPU)
  float      ours in float, plain operations, uncaptured
  twin       bench/twin/ in float32, its alignment searched in every step; the same clipping and AdamW
  and the twin again, four times, with other random noise: what noise alone does, the yardstick.
Both of ours draw the same noise, the twin draws its own.

Agreement: losses are averaged over windows of 25 steps. In each window the curves lie apart by (highest - lowest) / mean.
It holds if captured, float and twin lie apart at most 1.5 times as far as the twin's five runs do, both in the worst
window (no curve leaves the others for a while) and on average over all windows (none lies beside them all the time).

Captured against uncaptured, both in bfloat16 with the same noise, over 100 steps: the relative difference of each
step's loss. On a GPU the gradient of attention adds in any order, so two runs of one program differ too: they are the
yardstick. It holds if the largest and the median difference are at most three times theirs, or below 1e-4. The CPU
captures nothing; there it only shows that a run repeats itself.

Exit status 1: one of the two does not hold. The corpus is `myxtts demo-data` unless --corpus names one."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch

from twin.voice import Voice

WINDOW = 25
APART_AT_MOST = 1.5
PAIR_AT_MOST, PAIR_ROUNDING = 3.0, 1e-4
# Those of src/train/update.h; weight decay is for matrices alone.
BETAS, EPS, WEIGHT_DECAY, GRADIENT_CLIP = (0.9, 0.99), 1e-8, 0.01, 5.0

FLOAT = {"optimization_level": "basic", "enable_graph_mode": False, "enable_fused_kernels": False}
CAPTURED = {"optimization_level": "enhanced"}
UNCAPTURED = {"optimization_level": "enhanced", "enable_graph_mode": False}


# What is judged: pure functions of losses.

def smoothed(losses, window=WINDOW):
    """Means over windows; what does not fill one at the end is left out, unless there is nothing else."""
    whole = len(losses) // window
    return [float(np.mean(losses[i * window : (i + 1) * window])) for i in range(whole)] or [float(np.mean(losses))]


def apart(curves, window=WINDOW):
    """How far curves lie apart, relative to their mean: in the worst window, and on average."""
    windows = np.array([smoothed(losses, window) for losses in curves])
    distance = (windows.max(0) - windows.min(0)) / windows.mean(0)
    return {"largest": float(distance.max()), "mean": float(distance.mean())}


def agreement(compared, yardstick, window=WINDOW):
    distance, noise = apart(compared, window), apart(yardstick, window)
    finite = bool(np.isfinite([*distance.values(), *noise.values()]).all())
    return {"apart": distance, "by_noise_alone": noise, "holds": finite and all(distance[key] <= APART_AT_MOST * noise[key] for key in distance)}


def pair_difference(a, b):
    difference = np.abs(np.array(a) - b) / np.abs(b)
    return {"largest": float(difference.max()), "median": float(np.median(difference))}


def pair_agreement(captured, captured_again, uncaptured):
    difference, noise = pair_difference(captured, uncaptured), pair_difference(captured, captured_again)
    return {"difference": difference, "of_two_captured_runs": noise,
            "holds": all(difference[key] <= max(PAIR_AT_MOST * noise[key], PAIR_ROUNDING) for key in difference)}


# Ours.

def read_safetensors(path):
    """Tensors by name, and the metadata: little enough to need no package."""
    content = path.read_bytes()
    data = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:data])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(content[data + begin : data + end], {"F32": np.float32, "I32": np.int32}[entry["dtype"]])
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]).copy())
    return tensors, metadata


class Program:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.corpus = options.corpus or folder / "corpus"
        if not options.corpus:
            self.run("demo-data", self.corpus, "--clips", options.clips)

    def run(self, *arguments):
        done = subprocess.run([self.options.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{shlex.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")

    def config(self, steps, training):
        """A configuration file; JSON is YAML."""
        settings = {"data": {"train_data": str(self.corpus), "batch_size": self.options.batch_size, "val_share": 0.0},
                    "model": {"size": self.options.size},
                    "training": {"device": self.options.device, "seed": self.options.seed, "learning_rate": self.options.learning_rate, "max_steps": steps, "epochs": steps, "log_every": 1,
                                 "checkpoint_every": steps, "weight_decay": WEIGHT_DECAY, "gradient_clip": GRADIENT_CLIP, "dropout": 0.0, "sample_text": "a"} | training}
        file = self.folder / "config.yaml"
        file.write_text(json.dumps(settings))
        return file

    def train(self, name, steps, training):
        """The lines of metrics.jsonl, one per step."""
        folder = self.folder / name
        print(f"{name}: {steps} steps", flush=True)
        self.run("train", "--config", self.config(steps, {"checkpoint_dir": str(folder)} | training))
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == list(range(1, steps + 1)), f"{folder}/metrics.jsonl has not every step"
        return lines

    def losses(self, name, steps, training):
        losses = [line["loss"] for line in self.train(name, steps, training)]
        shutil.rmtree(self.folder / name)
        return losses

    def initial_voice(self):
        """Weights by name, and the corpus's mean and std: a checkpoint after one step that changes nothing."""
        self.train("initial", 1, FLOAT | {"learning_rate": 1e-12})
        tensors, metadata = read_safetensors(self.folder / "initial" / "step-00000001.safetensors")
        return {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}, json.loads(metadata["corpus_mel"])

    def batches(self, steps):
        """What training is fed, in its order."""
        folder, epoch, done = self.folder / "batches", 0, 0
        while done < steps:
            self.run("batches", "--config", self.config(steps, {}), "--epoch", epoch, "--num-batches", steps - done, "--dump", folder)
            for file in sorted(folder.iterdir()):
                yield read_safetensors(file)[0]
                done += 1
            shutil.rmtree(folder)
            epoch += 1


# The twin.

class Twin:
    def __init__(self, options, weights, mel, noise_seed):
        n_mels, vocabulary = weights["encoder.mu.weight"].shape[0], weights["encoder.embedding"].shape[0]
        self.device = torch.device(options.device)
        self.voice = Voice(options.size, vocabulary, n_mels, mel["mean"], mel["deviation"])
        self.voice.load_state_dict(weights)
        self.voice.to(self.device)
        parameters = list(self.voice.parameters())
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": WEIGHT_DECAY}, {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, betas=BETAS, eps=EPS)
        self.generator = torch.Generator(self.device).manual_seed(noise_seed)
        self.losses = []

    def draw(self, mel):
        return torch.rand(mel.shape[0], generator=self.generator, device=self.device), torch.randn(mel.shape, generator=self.generator, device=self.device)

    def step(self, batch, learning_rate):
        batch = {name: value.to(self.device) for name, value in batch.items()}
        time, noise = self.draw(batch["mel"])
        loss = self.voice.losses(**batch, time=time, noise=noise)["total"]
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.voice.parameters(), GRADIENT_CLIP)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.losses.append(loss.item())


def train_twins(options, program, learning_rates):
    """The losses of each run; they see each batch one after another."""
    weights, mel = program.initial_voice()
    twins = [Twin(options, weights, mel, noise_seed=1000 + i) for i in range(options.twins)]
    print(f"twin: {len(learning_rates)} steps, {options.twins} times", flush=True)
    for batch, learning_rate in zip(program.batches(len(learning_rates)), learning_rates):
        for twin in twins:
            twin.step(batch, learning_rate)
    return [twin.losses for twin in twins]


# The picture.

NAMES = {"captured": "MyXTTS, captured, bfloat16", "float": "MyXTTS, float, plain, uncaptured", "twin": "the twin in PyTorch, float32"}
STYLE = """<style>
  .paper { fill: #ffffff } .ink { fill: #1f2328 } .rule { stroke: #1f2328; stroke-opacity: 0.15 } .band { fill: #1f2328; fill-opacity: 0.12 }
  .line { fill: none; stroke-linejoin: round } .captured { stroke: #0969da; stroke-width: 1.6 }
  .float { stroke: #d1570a; stroke-width: 2.4; stroke-dasharray: 7 4 } .twin { stroke: #1a9850; stroke-width: 5; stroke-opacity: 0.45 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .ink { fill: #e6edf3 } .rule { stroke: #e6edf3 } .band { fill: #e6edf3; fill-opacity: 0.18 }
    .captured { stroke: #58a6ff } .float { stroke: #ff9a4d } .twin { stroke: #3fd07f }
  }
</style>"""


def round_ticks(low, high, about=5):
    power = 10.0 ** np.floor(np.log10((high - low) / about))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= (high - low) / about * 0.999)
    return [i * step for i in range(int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9)) + 1)]


class Panel:
    """Axes with values to places on the paper."""
    LEFT, RIGHT = 64, 700

    def __init__(self, top, bottom, steps, values, unit):
        self.top, self.bottom, self.steps, self.unit = top, bottom, steps, unit
        room = 0.06 * (max(values) - min(values)) or 1.0
        self.low, self.high = min(values) - room, max(values) + room

    def place(self, step, value):
        x = self.LEFT + step / self.steps * (self.RIGHT - self.LEFT)
        return f"{x:.1f},{self.bottom - (value - self.low) / (self.high - self.low) * (self.bottom - self.top):.1f}"

    def axes(self, label):
        out = []
        for tick in round_ticks(self.low, self.high):
            y = float(self.place(0, tick).split(",")[1])
            out.append(f'<line class="rule" x1="{self.LEFT}" y1="{y}" x2="{self.RIGHT}" y2="{y}"/><text class="ink" x="{self.LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:g}{self.unit}</text>')
        for tick in round_ticks(0, self.steps, 8):
            x = float(self.place(tick, self.low).split(",")[0])
            out.append(f'<line class="rule" x1="{x}" y1="{self.bottom}" x2="{x}" y2="{self.bottom + 5}"/><text class="ink" x="{x}" y="{self.bottom + 19}" text-anchor="middle">{tick:g}</text>')
        middle = (self.top + self.bottom) / 2
        out.append(f'<text class="ink" transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{label}</text>')
        return out

    def line(self, name, places, values):
        return f'<polyline class="line {name}" points="{" ".join(self.place(*point) for point in zip(places, values))}"/>'

    def band(self, places, low, high):
        points = [*zip(places, high), *reversed([*zip(places, low)])]
        return f'<polygon class="band" points="{" ".join(self.place(*point) for point in points)}"/>'


def draw(curves, twins, title, window=WINDOW):
    """`curves`: losses by the keys of NAMES."""
    steps = len(twins[0])
    window = min(window, steps)
    windows = {name: smoothed(losses, window) for name, losses in curves.items()}
    noise = np.array([smoothed(losses, window) for losses in twins])
    places = [(i + 0.5) * window for i in range(noise.shape[1])]
    middle = noise.mean(0)
    percent = {name: (np.array(values) / middle - 1) * 100 for name, values in windows.items()}
    noise_percent = (noise / middle - 1) * 100
    order = [name for name in ("twin", "float", "captured") if name in curves]

    loss = Panel(84, 300, steps, [value for values in windows.values() for value in values], "")
    apart_by = Panel(344, 470, steps, [*noise_percent.ravel(), *np.concatenate(list(percent.values()))], " %")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 520" role="img" font-family="system-ui,sans-serif" font-size="12"><title>{title}</title>', STYLE,
           '<rect class="paper" width="720" height="520"/>', f'<text class="ink" x="{Panel.LEFT}" y="24" font-size="15" font-weight="600">{title}</text>']
    for i, name in enumerate(order):
        x, y = Panel.LEFT + (i % 2) * 320, 44 + (i // 2) * 18
        out.append(f'<line class="line {name}" x1="{x}" y1="{y}" x2="{x + 34}" y2="{y}"/><text class="ink" x="{x + 42}" y="{y + 4}">{NAMES[name]}</text>')
    x, y = Panel.LEFT + (len(order) % 2) * 320, 44 + (len(order) // 2) * 18
    out.append(f'<rect class="band" x="{x}" y="{y - 6}" width="34" height="12"/><text class="ink" x="{x + 42}" y="{y + 4}">{len(twins)} runs of the twin that differ by noise</text>')
    out += loss.axes(f"loss, mean of {window} steps") + apart_by.axes("from the twin's mean")
    out += [loss.line(name, places, windows[name]) for name in order]
    out += [apart_by.band(places, noise_percent.min(0), noise_percent.max(0))] + [apart_by.line(name, places, percent[name]) for name in order]
    out += [f'<text class="ink" x="{(Panel.LEFT + Panel.RIGHT) / 2}" y="510" text-anchor="middle">step</text>', "</svg>"]
    return "\n".join(out) + "\n"


def percent(value):
    return f"{value * 100:.3g} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("MYXTTS", "build/myxtts"))
    parser.add_argument("--device", default="cuda:0", help="cpu or cuda:N")
    parser.add_argument("--size", default="small", choices=["tiny", "small", "normal", "big"])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--pair-steps", type=int, default=100, help="of captured against uncaptured")
    parser.add_argument("--twins", type=int, default=5, help="runs of the twin; fewer are a worse yardstick")
    parser.add_argument("--corpus", help="a corpus of yours")
    parser.add_argument("--clips", type=int, default=2000, help="of the demo corpus")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=5e-4, help="at its peak")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    parser.add_argument("--svg")
    options = parser.parse_args()
    if options.twins < 2 or options.steps < 1 or options.pair_steps < 1:
        parser.error("--twins must be at least 2, --steps and --pair-steps at least 1")
    on_gpu = options.device != "cpu"
    name = torch.cuda.get_device_name(options.device) if on_gpu else "CPU"

    with tempfile.TemporaryDirectory(prefix="myxtts_curves_") as folder:
        program = Program(options, pathlib.Path(folder))
        lines = program.train("float", options.steps, FLOAT)
        curves = {"float": [line["loss"] for line in lines]}
        if on_gpu:
            curves["captured"] = program.losses("captured", options.steps, CAPTURED)
        twins = train_twins(options, program, [line["lr"] for line in lines])
        curves["twin"] = twins[0]
        pair = [program.losses(name, options.pair_steps, training) for name, training in
                (("pair", CAPTURED), ("pair again", CAPTURED), ("pair uncaptured", UNCAPTURED))]

    together, captured = agreement(list(curves.values()), twins), pair_agreement(*pair)
    print(f"loss of the first {WINDOW} steps and of the last, on {name}:")
    for key, losses in curves.items():
        print(f"  {NAMES[key]:40}{smoothed(losses)[0]:9.4f}{smoothed(losses)[-1]:9.4f}")
    print(f"  apart in the worst window {percent(together['apart']['largest'])}, on average {percent(together['apart']['mean'])}; "
          f"the twin by noise alone {percent(together['by_noise_alone']['largest'])}, {percent(together['by_noise_alone']['mean'])}: {'agree' if together['holds'] else 'DO NOT AGREE'}")
    print(f"captured against uncaptured, {options.pair_steps} steps:" if on_gpu else f"a run against itself, {options.pair_steps} steps (the CPU captures nothing):")
    print(f"  largest difference {percent(captured['difference']['largest'])}, median {percent(captured['difference']['median'])}; "
          f"of two runs of the same {percent(captured['of_two_captured_runs']['largest'])}, {percent(captured['of_two_captured_runs']['median'])}: {'equal to rounding' if captured['holds'] else 'NOT EQUAL'}")
    if options.svg:
        pathlib.Path(options.svg).write_text(draw(curves, twins, f"Loss over {options.steps} steps, {options.size}, on {name}"))
    if options.out:
        commit = os.environ.get("MYXTTS_COMMIT") or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        result = {"claim": "loss curves agree within noise; a captured step computes what an uncaptured one does", "command": shlex.join(["python", "bench/loss_curves.py", *sys.argv[1:]]),
                  "hardware": name, "machine": platform.machine(), "torch": torch.__version__, "commit": commit, "date": datetime.date.today().isoformat(),
                  "size": options.size, "batch_size": options.batch_size, "learning_rate": options.learning_rate, "window": WINDOW,
                  "corpus": options.corpus or f"demo-data, {options.clips} clips", "agreement": together, "captured_against_uncaptured": captured,
                  "curves": curves, "twin_by_noise": twins, "pair": dict(zip(("captured", "captured_again", "uncaptured"), pair))}
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0 if together["holds"] and captured["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
