#!/usr/bin/env python3
"""How fast libtorch multiplies matrices on one core: MKL's floats, oneDNN's floats, and bfloat16 with its casts.

    python bench/cpu_products.py [--out FILE]

Claim: on processors that MKL is not made for, oneDNN's floats are at least twice as fast, with the same error.
Peers: libtorch's default (MKL). Shapes are those of a training step of `tiny`. Each figure is the best of 30, since
other programs only make it slower; the spread is that of three rounds. Limit: the processor's own, which no tool
here knows."""
import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import time

import torch

SHAPES = [(1200, 256, 768), (1200, 256, 1024), (1200, 1024, 256), (1200, 256, 256), (240, 960, 768)]  # rows, in, out


def best_s(work, times=30):
    work()
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def error_of(found, exact):
    return ((found.double() - exact).norm() / exact.norm()).item()


def measure(rows, width_in, width_out):
    x, weight, d_out = torch.randn(rows, width_in), torch.randn(width_out, width_in), torch.randn(rows, width_out)
    exact = x.double() @ weight.double().t()
    products = {"forward": lambda: x @ weight.t(), "gradient of the input": lambda: d_out @ weight, "gradient of the weight": lambda: d_out.t() @ x}
    gflop = 2 * rows * width_in * width_out / 1e9
    result = {"rows": rows, "in": width_in, "out": width_out}
    for name, precision in (("mkl", "highest"), ("onednn", "medium")):
        torch.set_float32_matmul_precision(precision)
        result[name] = {what: round(gflop / best_s(work), 1) for what, work in products.items()} | {"error": error_of(x @ weight.t(), exact)}
    result["bfloat16 with casts"] = {"forward": round(gflop / best_s(lambda: (x.bfloat16() @ weight.bfloat16().t()).float()), 1),
                                     "error": error_of((x.bfloat16() @ weight.bfloat16().t()).float(), exact)}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds = [[measure(*shape) for shape in SHAPES] for _ in range(3)]
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    print(f"GFLOP/s on one core, {cpu}: rows x in -> out, best of three rounds (worst)")
    best = []
    for shapes in zip(*rounds):
        first = shapes[0]
        line = f"{first['rows']:5} x {first['in']:4} -> {first['out']:4}"
        for name in ("mkl", "onednn", "bfloat16 with casts"):
            figures = [shape[name]["forward"] for shape in shapes]
            line += f"   {name} {max(figures):.0f} ({min(figures):.0f})"
        print(line)
        best.append(max(shapes, key=lambda shape: shape["mkl"]["forward"] + shape["onednn"]["forward"]))
    if options.out:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        options.out.write_text(json.dumps({"what": "matrix products of floats on one core, GFLOP/s", "hardware": cpu, "torch": torch.__version__, "commit": commit,
                                           "date": datetime.date.today().isoformat(), "command": "python bench/cpu_products.py", "shapes": best,
                                           "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
