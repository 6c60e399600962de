"""Claim: a training step of the voice costs no more than PyTorch's best for one static shape (reduce-overhead). If
lengths vary it does not stall, and a few shapes give more audio per second than one.

  python bench/step_peers.py [--device cuda] [--size normal] [--lengths lj] [--only TEXT] [--ema] [--out FILE]

Batch: 16 rows x 800 frames x 150 tokens. If lengths vary, all rows of a step have one random length: LJSpeech-like
(normal, mean 6.57 s, std 2.2, 1.1 to 10.1 s, which is 95 to 870 frames), or uniform from 400 to 800 frames. Ours gets
the same lengths, padded to 12 shapes and to one, as long as the longest; its padding is part of its time.
Peers: the same voice in PyTorch (bench/twin/), bf16, clipping, fused AdamW: eager, torch.compile, reduce-overhead.
They are favoured. The alignment is given to them; ours searches for it inside the step. Rows are full, so that they
need no attention mask (the forms "with a key mask" show its cost). Their input is on the device already. The EMA of
the weights is left out unless asked for.
Metric: median ms from step to step by CUDA events; the host never waits. If lengths vary, means are compared, so that
stalls count. Spread: std / mean. Warm-up comes first, and its time is the time to compile. Limit: matrix products and
attention alone, at --tflops.
Each form has its own process. Warm-up ends with the step in which --limit-s passes, and so do the timed steps. A step
may compile for minutes: a form is killed --kill-s after its first step began, and the lower bounds are kept. Its mean
is at least the time so far over all the steps that were asked for. If it was still warming up, the time and the steps
of warm-up count too, and so does the time of our capture. No form starts after --total-s: the forms that matter most
come first. --out is written after every form.
MYXTTS names the program (default build/myxtts); if it has no `bench step`, the peers run alone."""
import argparse
import contextlib
import dataclasses
import datetime
import json
import multiprocessing
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # otherwise cached code hides the time to compile

import numpy as np
import torch

from twin.step import Trainer
from twin.voice import Voice, step_flops

PROGRAM = os.environ.get("MYXTTS", "build/myxtts")
VOCABULARY, N_MELS = 100, 80
OUR_SHAPES = (12, 1)
TIMED_SEED = 2  # of the timed lengths; warm-up has others


@dataclasses.dataclass
class Form:
    mode: str
    weights: str = "autocast"
    key_mask: bool = False
    varying: bool = False
    padded_to: int = 1  # lengths are rounded up to a multiple of it
    dynamic: bool | None = None

    def __str__(self):
        name = {"eager": "PyTorch eager", "compile": "torch.compile", "reduce-overhead": "torch.compile reduce-overhead"}[self.mode]
        name += ", dynamic" if self.dynamic else ""
        name += ", bf16 weights" if self.weights == "masters" else ""
        name += ", with a key mask" if self.key_mask else ""
        name += ", lengths vary" if self.varying else ""
        return name + (f", padded to {self.padded_to}s" if self.padded_to > 1 else "")


MODES = ("eager", "compile", "reduce-overhead")
# The forms that the claim is about come first, after those that take no time.
FORMS = [Form("eager"), Form("eager", varying=True), Form("reduce-overhead"), Form("reduce-overhead", varying=True)]
FORMS += [Form("reduce-overhead", weights="masters"), Form("compile"), Form("compile", varying=True)]
# The remedies of a user who meets the stalls: few shapes, or one dynamic trace.
FORMS += [Form("reduce-overhead", varying=True, padded_to=100), Form("compile", varying=True, dynamic=True)]
FORMS += [Form(mode, weights="masters") for mode in ("eager", "compile")]
FORMS += [Form(mode, key_mask=True) for mode in ("eager", "reduce-overhead")]

QUICK = [Form("eager"), Form("eager", weights="masters"), Form("eager", varying=True)]


def tokens_of(frames, options):
    return max(1, round(options.tokens * frames / options.frames))


def make_batch(options, frames):
    rows, tokens = options.rows, tokens_of(frames, options)
    generator = torch.Generator().manual_seed(frames)
    batch = {"tokens": torch.randint(1, VOCABULARY, (rows, tokens), generator=generator, dtype=torch.int32),
             "text_lengths": torch.full((rows,), tokens, dtype=torch.int32), "mel_lengths": torch.full((rows,), frames, dtype=torch.int32),
             "mel": torch.randn((rows, frames, N_MELS), generator=generator) * 2 - 5,
             "token_of_frame": (torch.arange(frames, dtype=torch.int32) * tokens // frames).repeat(rows, 1)}
    return {name: value.to(options.device) for name, value in batch.items()}


def length_range(options):
    """Shortest and longest, in frames. LJSpeech's are as they are at --frames 800, and scale with it."""
    if options.lengths == "uniform":
        return options.frames // 2, options.frames
    return tuple(max(1, round(seconds * 22050 / 256 * options.frames / 800)) for seconds in (1.1, 10.1))


def padded(length, form, options):
    return min(length_range(options)[1], -(-length // form.padded_to) * form.padded_to)


def random_lengths(options, count, seed):
    generator, (shortest, longest) = np.random.default_rng(seed), length_range(options)
    if options.lengths == "uniform":
        return [int(length) for length in generator.integers(shortest, longest + 1, count)]
    frames = generator.normal(6.57, 2.2, count) * 22050 / 256 * options.frames / 800
    return [round(float(length)) for length in np.clip(frames, shortest, longest)]


def lengths_of(form, options, count, seed):
    if not form.varying:
        return [options.frames] * count
    return [padded(length, form, options) for length in random_lengths(options, count, seed)]


def warm_up_lengths(form, options):
    if form.padded_to > 1:  # its few shapes are known before training starts
        return sorted({padded(length, form, options) for length in range(length_range(options)[0], length_range(options)[1] + 1)}) * 3
    return lengths_of(form, options, options.warm_up, seed=1)


def limit_ms(lengths, options):
    return np.mean([step_flops(options.size, options.rows, length, tokens_of(length, options), N_MELS) for length in lengths]) / options.tflops / 1e9


def slowest(steps_ms):
    return sorted(map(float, steps_ms), reverse=True)[:5]


def synchronize(options):
    if options.device == "cuda":
        torch.cuda.synchronize()


def timed(trainer, batches, options, send):
    """Milliseconds of each step, wall-clock milliseconds of the whole run, and the last loss. Stops at the time limit."""
    on_gpu = options.device == "cuda"
    synchronize(options)
    start = time.perf_counter()
    marks = []

    def mark():
        marks.append(torch.cuda.Event(enable_timing=True) if on_gpu else time.perf_counter())
        if on_gpu:
            marks[-1].record()
        send("timed", time.monotonic())

    mark()
    for batch in batches:
        loss = trainer.step(batch)
        mark()
        if time.perf_counter() - start > options.limit_s:
            break
    synchronize(options)
    wall = (time.perf_counter() - start) * 1e3
    steps = [a.elapsed_time(b) if on_gpu else (b - a) * 1e3 for a, b in zip(marks, marks[1:])]
    return steps, wall, float(loss)


def measure(form, options, send):
    torch.manual_seed(0)
    voice = Voice(options.size, VOCABULARY, N_MELS, -5.0, 2.0, key_mask=form.key_mask).to(options.device)
    trainer = Trainer(voice, form.mode, form.weights, 0.999 if options.ema else None, dynamic=form.dynamic)
    warm, lengths = warm_up_lengths(form, options), lengths_of(form, options, options.steps, TIMED_SEED)
    batches = {length: make_batch(options, length) for length in {*warm, *lengths}}

    start = time.perf_counter()
    send("warm-up", time.monotonic())
    for done_warm, length in enumerate(warm, 1):
        trainer.step(batches[length])
        send("warm-up", time.monotonic())
        if time.perf_counter() - start > options.limit_s:  # the rest of compilation is then part of the timed steps, as it is for a user
            warm = warm[:done_warm]
            break
    synchronize(options)
    warm_s = time.perf_counter() - start
    steps, wall, loss = timed(trainer, [batches[length] for length in lengths], options, send)
    if not np.isfinite(loss):
        raise RuntimeError(f"the loss is {loss}")
    done = lengths[: len(steps)]
    limit = limit_ms(done, options)
    result = {"figure": float(np.median(steps)), "unit": "ms", "cv": float(np.std(steps) / np.mean(steps)), "mean": float(np.mean(steps)),
              "max": float(np.max(steps)), "wall_mean": wall / len(steps), "warm_up_s": warm_s, "warm_up_steps": len(warm), "steps": len(steps),
              "shapes": len(set(done)), "limit": limit, "fraction_of_limit": limit / float(np.median(steps)), "loss": loss}
    if form.varying:
        result["slowest_steps_ms"] = slowest(steps)
    if options.device == "cuda":
        result["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return result


def run_form(form, options, pipe, measure_form):
    """Runs in a form's own process. Sends the hardware, when warm-up and timed steps begin and each step ends, and the result."""
    os.setsid()  # so that it and the compilers it starts can be killed together

    def send(what, value):
        pipe.send((what, value))

    try:
        result = measure_form(form, options, send)
    except Exception as error:  # a peer that fails is a result too
        result = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    send("result", result)


def measure_in_torch(form, options, send):
    torch.set_float32_matmul_precision("high")
    torch._dynamo.config.recompile_limit = 64
    send("hardware", hardware(options))
    return measure(form, options, send)


def stopped(form, options, warm, timed, now):
    """Lower bounds of a form killed in the middle of a step. `warm`, `timed`: when each part began and each of its steps ended, in seconds; `now`: when it was killed."""
    begun, asked = (timed[0], options.steps) if timed else (warm[0], len(warm_up_lengths(form, options)) + options.steps)
    steps = [np.diff(warm), np.diff([*timed, now])] if timed else [np.diff([*warm, now])]
    lengths, done = lengths_of(form, options, options.steps, TIMED_SEED), max(0, len(timed) - 1)
    result = {"stopped": True, "unit": "ms", "mean_at_least": (now - begun) * 1e3 / asked, "longest_step_at_least": float(np.concatenate(steps).max()) * 1e3,
              "in_warm_up": not timed, "warm_up_s": (timed[0] if timed else now) - warm[0], "warm_up_steps": len(warm) - 1, "steps": done,
              "shapes": len(set(lengths[:done])), "limit": limit_ms(lengths, options)}
    if form.varying:
        result["slowest_steps_ms"] = slowest(np.diff(timed) * 1e3)
    return result


def measure_apart(form, options, measure_form=measure_in_torch):
    """Measures a form in its own process, which is killed at --kill-s. Returns the result, and the hardware if it was sent.
    `measure_form(form, options, send)` returns the result there; it is a function of a module, so that it can be imported there."""
    context = multiprocessing.get_context("spawn")
    pipe, its_end = context.Pipe(duplex=False)
    process = context.Process(target=run_form, args=(form, options, its_end, measure_form))
    received = {"hardware": [None], "warm-up": [], "timed": [], "result": []}
    process.start()
    its_end.close()
    try:
        while not received["result"]:
            left_s = max(0, received["warm-up"][0] + options.kill_s - time.monotonic()) if received["warm-up"] else None
            if not pipe.poll(left_s):
                received["result"] = [stopped(form, options, received["warm-up"], received["timed"], time.monotonic())]
                break
            what, value = pipe.recv()
            received[what].append(value)
    except EOFError:
        process.join()
        received["result"] = [{"failed": f"its process died: exit {process.exitcode}"}]
    finally:
        with contextlib.suppress(ProcessLookupError):  # the whole group has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()
        pipe.close()
    return received["result"][-1], received["hardware"][-1]


def ours(options, *more):
    """The metrics of `myxtts bench step`, or why there are none."""
    asked = shlex.split(options.ours)
    same = {"--model-size": options.size, "--batch-size": options.rows, "--frames": options.frames, "--tokens": options.tokens, "--tera-flops": options.tflops,
            "--device": "cuda:0" if options.device == "cuda" else "cpu"}
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [PROGRAM, "bench", "step", *asked, *more, "--json", out.name]
        for flag, value in same.items():
            command += [flag, str(value)] if flag not in asked else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit_s + 120)
        except OSError as error:
            return None, str(error)
        except subprocess.TimeoutExpired:
            return None, "it took too long"
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
        return json.load(open(out.name)), None


def ours_varying(options):
    """Our metrics over the lengths that the peers are timed on, by the max number of shapes; or why there are none."""
    metrics = {}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{length}\n" for length in random_lengths(options, options.steps, TIMED_SEED))
        file.flush()
        for shapes in OUR_SHAPES:
            metrics[shapes], missing = ours(options, "--lengths", file.name, "--shape-buckets", str(shapes))
            if missing:
                return {}, missing
    return metrics, None


def hardware(options):
    return torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()}, {torch.get_num_threads()} threads"


def compare(form, result, own, varying):
    """Adds how many times faster ours is: by medians, or by means if lengths vary."""
    if "failed" in result:
        return
    if form.varying and varying:
        several = varying[OUR_SHAPES[0]]
        if "stopped" not in result:
            result["ours_is_times_faster"] = result["mean"] / several["figure"]
        else:
            capture = several["capture_s"] * 1e3 / several["repeats"] if result["in_warm_up"] else 0
            result["ours_is_times_faster_at_least"] = result["mean_at_least"] / (several["figure"] + capture)
    elif own and not form.varying and "stopped" not in result:  # the median of a stopped form is unknown
        result["ours_is_times_faster"] = result["figure"] / own["figure"]


def line_of(form, result, options):
    by_means = ", by means" if form.varying else ""
    if "failed" in result:
        return f"{str(form):64}failed: {result['failed'][:140]}"
    if "stopped" in result:
        where = f"after {result['warm_up_steps']} steps of warm-up: mean, warm-up included," if result["in_warm_up"] else f"after {result['steps']} of {options.steps} steps: mean"
        line = f"{str(form):64}stopped {where} at least {result['mean_at_least']:.0f} ms, one step took at least {result['longest_step_at_least'] / 1e3:.1f} s"
        return line + (f"   ours is at least {result['ours_is_times_faster_at_least']:.2f} x{by_means}" if "ours_is_times_faster_at_least" in result else "")
    line = f"{str(form):64}{result['figure']:10.2f}{result['cv']:7.1%}{result['mean']:9.2f}{result['max']:10.2f}{result['fraction_of_limit']:9.1%}{result['warm_up_s']:11.1f}"
    line += f"   ours is {result['ours_is_times_faster']:.2f} x{by_means}" if "ours_is_times_faster" in result else ""
    return line + (f"   stopped after {result['steps']} steps" if result["steps"] < options.steps else "")


def save(report, file):
    if file:
        with open(file + ".part", "w") as part:
            json.dump(report, part, indent=2)
        os.replace(file + ".part", file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--size", default="normal", choices=["tiny", "small", "normal", "big"])
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--frames", type=int, default=800, help="of the fixed shape")
    parser.add_argument("--lengths", default="lj", choices=["lj", "uniform"], help="if they vary: like LJSpeech's, or half of --frames to all of it")
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=8, help="steps")
    parser.add_argument("--limit-s", type=float, default=60, help="warm-up ends with the step in which it passes, and so do the timed steps")
    parser.add_argument("--kill-s", type=float, default=180, help="a form is killed this long after its first step began")
    parser.add_argument("--total-s", type=float, default=200, help="no form starts later; 0: all of them run")
    parser.add_argument("--tflops", type=float, default=790, help="of the device in bf16: the limit follows from it")
    parser.add_argument("--ema", action="store_true", help="the peers keep an EMA of the weights too")
    parser.add_argument("--only", default="", help="forms of this name, or whose name holds this text; several with | between")
    parser.add_argument("--ours", default="", help="further arguments for every `myxtts bench step`, in one string; they override those of the peers")
    parser.add_argument("--quick", action="store_true", help="a small batch, few steps and, without --only, nothing compiled: a check that it runs")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.frames, options.tokens, options.steps, options.warm_up = 2, 64, 16, 4, 2
    wanted = options.only.split("|")
    names = [str(form) for form in FORMS]
    forms = [form for form in FORMS if any(str(form) == part if part in names else part in str(form) for part in wanted)
             and (not options.quick or options.only or form in QUICK)]
    if not forms:
        parser.error(f"--only {options.only} is not a form; there are: {'; '.join(names)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs the clean-up, which ends the process of a form too

    start = time.perf_counter()
    fixed = ["--repeats", "3", "--steps", str(options.steps)] if options.quick else []
    own, missing = ours(options, *fixed)
    varying, varying_missing = ours_varying(options) if own else ({}, missing)
    results, left_out = {}, []
    print(f"{'':64}{'median ms':>10}{'cv':>7}{'mean':>9}{'max':>10}{'of limit':>9}{'warm-up s':>11}")
    if own:
        print(f"{'myxtts':64}{own['figure']:10.2f}{own['cv']:7.1%}{'':19}{own.get('fraction_of_limit') or 0:9.1%}{own['capture_s']:11.1f}   {own['what']}")
    else:
        print(f"myxtts: `bench step` gave no metrics, so there are no ratios: {missing}")
    for shapes, metrics in varying.items():
        print(f"{'myxtts, lengths vary, ' + ('one shape' if shapes == 1 else f'max {shapes} shapes'):64}{metrics['median']:10.2f}{metrics['cv']:7.1%}{metrics['figure']:9.2f}{metrics['max']:10.2f}"
              f"{metrics['fraction_of_limit'] or 0:9.1%}{metrics['capture_s']:11.1f}   {metrics['captures']} captures, {metrics['padding']:.1%} padding, {metrics['audio_s_per_s']:.0f} s of audio per second")
    if own and varying_missing:
        print(f"myxtts: `bench step --lengths` gave no metrics: {varying_missing}")
    flops = step_flops(options.size, options.rows, options.frames, options.tokens, N_MELS)
    several, one = (varying[shapes]["audio_s_per_s"] for shapes in OUR_SHAPES) if varying else (None, None)
    commit = os.environ.get("MYXTTS_COMMIT") or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    report = {"claim": "a training step of the voice, in ms", "command": shlex.join(["python", "bench/step_peers.py", *sys.argv[1:]]), "hardware": own["device"] if own else None,
              "cores": os.cpu_count(), "machine": platform.machine(), "torch": torch.__version__, "commit": commit, "date": datetime.date.today().isoformat(),
              "batch": f"{options.rows} rows x {options.frames} frames x {options.tokens} tokens, full rows; if lengths vary, {length_range(options)[0]} to {length_range(options)[1]} frames, {'LJSpeech-like' if options.lengths == 'lj' else 'uniform'}",
              "size": options.size, "favours": "alignment given to the peers; ours searches inside the step", "ema": options.ema,
              "flops": flops, "tflops_per_s": options.tflops, "limit_ms": flops / options.tflops / 1e9, "myxtts": own, "myxtts_missing": missing,
              "myxtts_varying": varying, "myxtts_varying_missing": varying_missing, "audio_per_s_of_several_shapes_over_1": several / one if varying else None,
              "left_out": left_out, "peers": results}
    save(report, options.out)
    for form in forms:
        if options.total_s and time.perf_counter() - start > options.total_s:
            left_out.append(str(form))
            continue
        result, its_hardware = measure_apart(form, options)
        compare(form, result, own, varying)
        results[str(form)], report["hardware"] = result, its_hardware or report["hardware"]
        print(line_of(form, result, options), flush=True)
        save(report, options.out)
    print(f"{'the limit':64}{flops / options.tflops / 1e9:10.2f}   {flops / 1e12:.2f} TFLOP at {options.tflops:.0f} TFLOP/s")
    if varying:
        print(f"audio per second in {OUR_SHAPES[0]} shapes: {several / one:.2f} x that of one shape ({several:.0f} and {one:.0f} s)")
    if left_out:
        print(f"not started within --total-s {options.total_s:.0f}: {'; '.join(left_out)}")
    save(report, options.out)


if __name__ == "__main__":
    main()
