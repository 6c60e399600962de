#!/usr/bin/env python3
"""Ranks on one GPU: what NCCL's sum within the captured step costs one rank, whether two ranks on one card train as one
process does, and whether a rank that is killed ends the other.

Claim: the step of one rank takes less than 1.03 times that without ranks; losses of two ranks are those of one process.
Command: python3 bench/rank_gpu.py --out FILE (tools/gpu_check --only ranks)
Peers: the same program without ranks; sums in host memory. Spread: alternating rounds, all of them in the file.
Limit: one card, so no link between cards is measured, and two ranks show that sums are right, not that they are fast.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

MYXTTS = os.environ.get("MYXTTS", "build/cuda/myxtts")
STEPS, TIMEOUT_S = 20, 300
# NCCL refuses two ranks on one GPU unless it takes them for those of two machines, which talk over sockets.
TWO_MACHINES = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0",
                "NCCL_MNNVL_ENABLE": "0", "NCCL_IB_DISABLE": "1", "NCCL_CUMEM_ENABLE": "0"}
CONFIG = """
data: {{text_tokens: characters, num_workers: 1}}
training: {{log_every: 1, validate_every: 10, checkpoint_every: 10, seed: 3, rank_sum: {way}}}
"""


def bench_step(work, *more):
    file = work / "step.json"
    subprocess.run([MYXTTS, "bench", "step", "--device", "cuda:0", "--json", file, *more], check=True, stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())


def measure_step(work, rounds):
    times = {"alone": [], "one_rank": []}
    for _ in range(rounds):
        times["alone"].append(bench_step(work)["figure"])
        times["one_rank"].append(bench_step(work, "--reduce")["figure"])
    kernels = [kernel for kernel in bench_step(work, "--reduce", "--kernels")["kernels"] if re.search("nccl|oneRank", kernel["name"], re.I)]
    ratio = statistics.median(times["one_rank"]) / statistics.median(times["alone"])
    print(f"one rank with NCCL: {ratio:.4f} times the step without; kernels: {', '.join(kernel['name'] for kernel in kernels) or 'none'}")
    return {"step_ms": times, "ratio": ratio, "nccl_kernels": kernels, "passed": ratio < 1.03 and bool(kernels)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def train(work, run, world, way, level, steps=STEPS):
    config = work / f"{way}.yaml"
    config.write_text(CONFIG.format(way=way))
    command = [MYXTTS, "--no-progress", "train", "--train-data", work / "corpus", "--config", config, "--checkpoint-dir", run, "--model-size", "tiny",
               "--batch-size", "4", "--shape-buckets", "2", "--max-steps", str(steps), "--device", "cuda:0", "--optimization-level", level]
    port, ranks = free_port(), []
    for rank in range(world):
        environment = dict(os.environ)
        if world > 1:
            environment |= {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        if way == "nccl":
            environment |= TWO_MACHINES | {"NCCL_HOSTID": f"rank{rank}"}
        ranks.append(subprocess.Popen([str(word) for word in command], env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    return ranks


def losses(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def finish(ranks):
    errors = [rank.communicate(timeout=TIMEOUT_S)[1] for rank in ranks]
    return [rank.returncode for rank in ranks], errors


def refused(errors):
    """Why NCCL takes no two ranks on one card, if that is what went wrong."""
    return next((line for error in errors for line in error.splitlines() if "cannot connect the GPUs" in line), None)


def compare_losses(work):
    results = []
    for level, tolerance in (("basic", 1e-3), ("enhanced", 3e-2)):
        found = {}
        for name, world, way in (("alone", 1, "host"), ("host", 2, "host"), ("nccl", 2, "nccl")):
            statuses, errors = finish(train(work, work / f"{name}-{level}", world, way, level))
            if way == "nccl" and refused(errors):
                print(f"SKIPPED: two ranks over NCCL on one card: {refused(errors)}")
                continue
            if any(statuses):
                raise SystemExit(f"{name}, {level}: exit {statuses}\n" + "\n".join(errors))
            found[name] = losses(work / f"{name}-{level}")
        for one, other in (("alone", "host"), ("alone", "nccl"), ("host", "nccl")):
            if other not in found:
                continue
            apart = max(abs(found[other][step] / loss - 1) for step, loss in found[one].items())
            print(f"{level}: losses of {one} and {other} are apart by at most {apart:.2e}")
            results.append({"level": level, "of": [one, other], "steps": STEPS, "max_relative": apart, "equal": apart == 0, "passed": apart < tolerance})
    return results


def kill_one(work):
    for way in ("nccl", "host"):
        run = work / f"killed-{way}"
        ranks = train(work, run, 2, way, "enhanced", steps=1_000_000)
        begun = time.monotonic()
        while not list(run.glob("step-*")) and all(rank.poll() is None for rank in ranks) and time.monotonic() - begun < TIMEOUT_S:
            time.sleep(0.1)
        if any(rank.poll() is not None for rank in ranks):
            for rank in ranks:
                rank.kill()
            errors = finish(ranks)[1]
            if way == "nccl" and refused(errors):
                continue
            raise SystemExit("\n".join(errors))
        ranks[1].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        statuses, errors = finish(ranks)
        seconds, named = time.monotonic() - killed, "rank 1 of 2 no longer answers" in errors[0]
        print(f"killed, over {way}: the other rank ends after {seconds:.1f} s with status {statuses[0]}; the lost one is {'named' if named else 'NOT named'}")
        return {"way": way, "seconds": seconds, "status": statuses[0], "passed": seconds < 60 and statuses[0] == 1 and named}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="rank_gpu"))
    try:
        subprocess.run([MYXTTS, "demo-data", work / "corpus", "--clips", "40", "--seed", "1"], check=True, stdout=subprocess.DEVNULL)
        about = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], ["git", "rev-parse", "--short", "HEAD"]
        hardware, commit = (subprocess.run(words, text=True, capture_output=True).stdout.strip() for words in about)
        result = {"hardware": hardware, "commit": commit, "date": time.strftime("%Y-%m-%d"), "command": " ".join(["python3", *sys.argv]),
                  "one_rank": measure_step(work, options.rounds), "losses": compare_losses(work), "kill": kill_one(work)}
    finally:
        shutil.rmtree(work)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(not all(part["passed"] for part in [result["one_rank"], *result["losses"], result["kill"]]))


if __name__ == "__main__":
    main()
