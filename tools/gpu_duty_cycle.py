#!/usr/bin/env python3
"""Keeps a GPU busy with matrix products for a share of every period and lets it rest for the remainder: a load of known
rhythm, to see what `myxtts diagnose watch` says of it. Needs PyTorch with CUDA.

    tools/gpu_duty_cycle.py --period 2 --duty 0.5 --seconds 40 &
    build/myxtts diagnose watch --seconds 30
"""
import argparse
import time

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--period", type=float, default=2.0, help="seconds from one burst to the next [2]")
    parser.add_argument("--duty", type=float, default=0.5, help="share of the period at work, from 0 to 1 [0.5]")
    parser.add_argument("--seconds", type=float, default=40.0, help="how long [40]")
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the matrices [4096]")
    parser.add_argument("--device", default="cuda:0")
    wanted = parser.parse_args()
    if wanted.period <= 0 or not 0 <= wanted.duty <= 1:
        parser.error("--period must be above 0, --duty from 0 to 1")
    if not torch.cuda.is_available():
        parser.error("PyTorch finds no GPU here")

    a = torch.randn(wanted.size, wanted.size, device=wanted.device, dtype=torch.bfloat16)
    b = torch.randn_like(a)
    out = torch.empty_like(a)
    torch.mm(a, b, out=out)  # the first call loads libraries
    torch.cuda.synchronize(wanted.device)
    start = time.monotonic()
    print(f"{torch.cuda.get_device_name(wanted.device)}: {wanted.duty * wanted.period:g} s of work every "
          f"{wanted.period:g} s, for {wanted.seconds:g} s", flush=True)
    bursts = 0
    while (begin := start + bursts * wanted.period) < start + wanted.seconds:
        time.sleep(max(0.0, begin - time.monotonic()))
        # Two batches of products are always queued, so that the GPU does not wait for Python within a burst.
        queued = []
        while time.monotonic() < begin + wanted.duty * wanted.period:
            for _ in range(8):
                torch.mm(a, b, out=out)
            queued.append(torch.cuda.Event())
            queued[-1].record(torch.cuda.current_stream(a.device))
            if len(queued) > 2:
                queued.pop(0).synchronize()
        torch.cuda.synchronize(wanted.device)
        bursts += 1
    print(f"{bursts} bursts in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
