"""A file system that fails, under the real program: tests/tools/faults.c stands between it and the system."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BINARY, HANG_S, ROOT, at_once


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """The library to preload."""
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "tools" / "faults.c", "-ldl"], check=True)
    return str(library)


def run(*arguments, **environment):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S, env={**os.environ, **environment})


def batches(folder, out, **environment):
    done = run("batches", "--train-data", folder, "--batch-size", 4, "--num-batches", 99, "--device", "cpu", "--json", out, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())["batches"]


FAULTS = {
    "eio": {"FAULT": "eio", "FAULT_CALLS": "pread", "FAULT_FROM_BYTE": "1000"},
    "ends": {"FAULT": "ends", "FAULT_CALLS": "pread", "FAULT_FROM_BYTE": "5000"},
    "short": {"FAULT": "short"},
    "eintr": {"FAULT": "eintr"},
    "slow": {"FAULT": "slow"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_clip_that_cannot_be_read_is_replaced_and_slow_reads_are_waited_for(corpus, faults, tmp_path, fault):
    folder, out = tmp_path / "corpus", tmp_path / "out.json"
    shutil.copytree(corpus, folder)
    sound = batches(folder, out)
    clip = sound[1]["ids"][2]
    got = batches(folder, out, LD_PRELOAD=faults, FAULT_PATH=clip + ".wav", **FAULTS[fault])
    if fault in ("short", "eintr", "slow"):
        assert got == sound
        return
    (bad,) = [bad for batch in got for bad in batch["replaced"]]
    assert bad["id"] == clip and ("Input/output error" if fault == "eio" else "cut short") in bad["reason"]
    assert [batch["shape"] for batch in got] == [batch["shape"] for batch in sound]
    assert sum(a != b for a, b in zip(sound, got)) == 1


@pytest.mark.parametrize("fault", ["eio", "enospc", "eintr"])
@pytest.mark.parametrize("file", [".index", "metadata.csv", "phonemes.jsonl"])
def test_prepare_either_makes_a_whole_index_or_says_why_not(corpus, faults, tmp_path, file, fault):
    out = tmp_path / "out.json"
    log = tmp_path / "calls"
    shutil.copytree(corpus, tmp_path / "sound", ignore=shutil.ignore_patterns(".myxtts"))
    assert run("prepare", tmp_path / "sound", LD_PRELOAD=faults, FAULT_PATH=file, FAULT_LOG=str(log)).returncode == 0
    wanted = batches(tmp_path / "sound", out)
    if file == "phonemes.jsonl" and not log.exists():
        pytest.skip("espeak-ng is not installed: there are no phonemes")
    calls = len(log.read_text().splitlines())
    assert calls >= (6 if file == ".index" else 2)

    def prepare(call):
        folder = tmp_path / f"{call}"
        shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns(".myxtts"))
        done = run("prepare", folder, LD_PRELOAD=faults, FAULT_PATH=file, FAULT=fault, FAULT_NTH=str(call))
        assert done.returncode == 0 or (done.stderr.count("\n") == 1 and done.stderr.startswith("error: [")), done.stderr
        assert done.returncode == 0 or fault != "eintr"
        left = [path.name for path in (folder / ".myxtts").iterdir() if path.name.endswith(".tmp")]
        assert not left, f"call {call}"
        assert batches(folder, tmp_path / f"{call}.json") == wanted  # whatever there is, or a new one
        return done.returncode

    statuses = at_once(prepare, range(1, calls + 1))
    assert (sum(statuses) > 0) == (fault != "eintr")


@pytest.mark.parametrize("fault", ["eio", "enospc", "eintr"])
def test_a_pack_is_whole_or_leaves_nothing(corpus, faults, tmp_path, fault):
    log = tmp_path / "calls"
    shards = {}

    def pack(call, **environment):
        folder = tmp_path / f"pack-{call}"
        done = run("prepare", corpus, "--pack", folder, LD_PRELOAD=faults, FAULT_PATH=folder.name, **environment)
        assert done.returncode == 0 or (done.stderr.count("\n") == 1 and done.stderr.startswith("error: [")), done.stderr
        assert done.returncode == 0 or fault != "eintr", done.stderr
        shards[call] = {path.name: path.read_bytes() for path in folder.glob("*.tar")}
        assert shards[call] == (shards[0] if done.returncode == 0 else {}), f"call {call}"
        return done.returncode

    folder = tmp_path / "pack-0"
    assert run("prepare", corpus, "--pack", folder, LD_PRELOAD=faults, FAULT_PATH=folder.name, FAULT_LOG=str(log)).returncode == 0
    shards[0] = {path.name: path.read_bytes() for path in folder.glob("*.tar")}
    calls = len(log.read_text().splitlines())
    statuses = at_once(lambda call: pack(call, FAULT=fault, FAULT_NTH=str(call)), range(1, calls + 1, 2))
    assert (sum(statuses) > 0) == (fault != "eintr")


TRAIN = ["--max-steps", 4, "--batch-size", 4, "--device", "cpu", "--no-progress", "--seed", 5]


@pytest.fixture(scope="module")
def run_settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "config.yaml"
    path.write_text("training: {checkpoint_every: 2, log_every: 1, validate_every: 4, keep_checkpoints: 9}\n")
    return ["--config", path]


def read_tensors(folder):
    """The bytes of the last checkpoint's tensors: its header also holds the seconds of training."""
    content = (folder / "step-00000004.safetensors").read_bytes()
    return content[8 + int.from_bytes(content[:8], "little"):]


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_disk_that_is_full_for_the_logs_costs_lines_not_the_run(corpus, faults, run_settings, tmp_path):
    arguments = ["train", "--train-data", corpus, *run_settings, *TRAIN]
    assert run(*arguments, "--checkpoint-dir", tmp_path / "quiet").returncode == 0
    for file in ("metrics.jsonl", "tfevents"):
        folder = tmp_path / f"run_{file[:3]}"
        done = run(*arguments, "--checkpoint-dir", folder, LD_PRELOAD=faults, FAULT="enospc", FAULT_PATH=file,
                   FAULT_CALLS="pwrite,write", FAULT_NTH="2", FAULT_TIMES="2")
        assert done.returncode == 0, done.stderr
        assert "cannot be written, and the run continues without" in done.stderr
        lines = [line for line in metrics(folder) if "loss" in line]
        assert [line["step"] for line in lines] == [1, 2, 3, 4] if file == "tfevents" else 1 < len(lines) < 4
        assert [line["loss"] for line in lines] == [line["loss"] for line in metrics(tmp_path / "quiet")
                                                    if "loss" in line and line["step"] in {one["step"] for one in lines}]


@pytest.mark.parametrize("fault", ["eio", "enospc"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before_and_the_run(corpus, faults, run_settings, tmp_path, fault):
    arguments = ["train", "--train-data", corpus, *run_settings, *TRAIN]
    quiet = tmp_path / "quiet"
    assert run(*arguments, "--checkpoint-dir", quiet).returncode == 0
    # The first one cannot be written: the run ends with the second. The last one cannot: exit 1, and a resumed run ends it.
    folder = tmp_path / "first"
    done = run(*arguments, "--checkpoint-dir", folder, LD_PRELOAD=faults, FAULT=fault, FAULT_PATH="step-00000002", FAULT_CALLS="write")
    assert done.returncode == 0 and "the one before it stays, and the run continues" in done.stderr, done.stderr
    assert read_tensors(folder) == read_tensors(quiet)
    folder = tmp_path / "last"
    done = run(*arguments, "--checkpoint-dir", folder, LD_PRELOAD=faults, FAULT=fault, FAULT_PATH="step-00000004", FAULT_CALLS="write,fsync")
    assert done.returncode == 1 and "step 4 was not written" in done.stderr, done.stderr
    assert sorted(path.name for path in folder.glob("step*")) == ["step-00000002.safetensors"]
    assert not list(folder.glob(".*.tmp"))
    assert run(*arguments, "--checkpoint-dir", folder).returncode == 0
    assert read_tensors(folder) == read_tensors(quiet)


def test_calls_that_are_interrupted_change_nothing(corpus, faults, run_settings, tmp_path):
    arguments = ["train", "--train-data", corpus, *run_settings, *TRAIN]
    for name, environment in (("quiet", {}), ("interrupted", {"LD_PRELOAD": faults, "FAULT": "eintr", "FAULT_PATH": "interrupted"})):
        done = run(*arguments, "--checkpoint-dir", tmp_path / name, **environment)
        assert done.returncode == 0, done.stderr
    assert read_tensors(tmp_path / "quiet") == read_tensors(tmp_path / "interrupted")
    assert sorted(path.name for path in (tmp_path / "interrupted").iterdir()) == sorted(path.name for path in (tmp_path / "quiet").iterdir())


def test_a_folder_that_cannot_be_listed_ends_no_run_and_hides_no_checkpoint(corpus, faults, run_settings, tmp_path):
    def train(call):
        folder = tmp_path / f"run-{call}"
        done = run("train", "--train-data", corpus, *run_settings, *TRAIN, "--checkpoint-dir", folder, LD_PRELOAD=faults, FAULT="eio",
                   FAULT_PATH=folder.name, FAULT_CALLS="opendir,openat,readdir", FAULT_NTH=str(call))
        assert done.returncode in (0, 1, 2), f"call {call}: {done.stderr}"
        assert done.returncode == 0 or "error: [" in done.stderr, done.stderr
        assert not list(folder.glob("*.damaged"))
        if done.returncode == 0:
            assert len(list(folder.glob("step-*"))) == 2
        return done.returncode

    assert 0 in at_once(train, range(1, 26, 4))


def test_a_wall_clock_that_jumps_changes_nothing(corpus, faults, run_settings, tmp_path):
    arguments = ["train", "--train-data", corpus, *run_settings, *TRAIN]
    for name, environment in (("quiet", {}), ("jumps", {"LD_PRELOAD": faults, "FAULT_CLOCK_S": "100000"})):
        done = run(*arguments, "--checkpoint-dir", tmp_path / name, **environment)
        assert done.returncode == 0, done.stderr
    assert read_tensors(tmp_path / "quiet") == read_tensors(tmp_path / "jumps")
    assert all(line["step_ms"] >= 0 for line in metrics(tmp_path / "jumps") if "step_ms" in line)


def test_clips_that_vanish_or_shrink_during_an_epoch_are_replaced(corpus, tmp_path):
    folder, out = tmp_path / "corpus", tmp_path / "out.json"
    shutil.copytree(corpus, folder)
    sound = batches(folder, out)
    gone, cut = sound[0]["ids"][0], sound[2]["ids"][1]
    (folder / "wavs" / f"{gone}.wav").unlink()
    os.truncate(folder / "wavs" / f"{cut}.wav", 1000)
    replaced = {bad["id"]: bad["reason"] for batch in batches(folder, out) for bad in batch["replaced"]}
    assert set(replaced) == {gone, cut}


def test_clips_that_vanish_or_shrink_while_a_training_reads_them_are_replaced(corpus, run_settings, tmp_path):
    folder, checkpoints = tmp_path / "corpus", tmp_path / "run"
    shutil.copytree(corpus, folder)
    gone, cut = (batch["ids"][0] for batch in batches(folder, tmp_path / "out.json")[:2])
    training = subprocess.Popen([BINARY, *map(str, ["train", "--train-data", folder, *run_settings, "--max-steps", 100000, "--batch-size", 4, "--device",
                                                    "cpu", "--no-progress", "--checkpoint-dir", checkpoints])], stderr=subprocess.PIPE, text=True)
    listed, end = set(), time.monotonic() + HANG_S
    while not (checkpoints / "metrics.jsonl").exists() or not metrics(checkpoints):
        assert training.poll() is None and time.monotonic() < end, training.stderr.read()
        time.sleep(0.05)
    (folder / "wavs" / f"{gone}.wav").unlink()
    os.truncate(folder / "wavs" / f"{cut}.wav", 1000)
    while not {gone, cut} <= listed:
        assert training.poll() is None and time.monotonic() < end, training.stderr.read()
        time.sleep(0.05)
        lines = (checkpoints / "quarantine.jsonl").read_text().splitlines() if (checkpoints / "quarantine.jsonl").exists() else []
        listed = {json.loads(line)["id"] for line in lines}
    training.send_signal(signal.SIGINT)
    errors = training.communicate(timeout=HANG_S)[1]
    assert training.returncode == 0, errors
    assert listed == {gone, cut}


def test_a_shard_that_is_cut_short_loses_the_clips_behind_the_cut(myxtts, corpus, tmp_path):
    out = tmp_path / "out.json"
    myxtts("prepare", corpus, "--pack", tmp_path / "packed")
    sound = batches(tmp_path / "packed", out)
    (shard,) = (tmp_path / "packed").glob("*.tar")
    time = shard.stat().st_mtime_ns
    size = shard.stat().st_size
    os.truncate(shard, size // 2)
    os.truncate(shard, size)  # as long as before, and zeros: the index is still believed
    os.utime(shard, ns=(time, time))
    got = batches(tmp_path / "packed", out)
    replaced = {bad["id"] for batch in got for bad in batch["replaced"]}
    assert replaced and [batch["shape"] for batch in got] == [batch["shape"] for batch in sound]
    for before, after in zip(sound, got):
        if not after["replaced"]:
            assert before["hash"] == after["hash"]


def test_a_second_training_in_a_folder_is_refused_and_a_killed_one_locks_nothing(myxtts, corpus, run_settings, tmp_path):
    arguments = ["train", "--train-data", corpus, *run_settings, "--checkpoint-dir", tmp_path / "run", "--batch-size", 4, "--device", "cpu"]
    first = subprocess.Popen([BINARY, *map(str, arguments), "--max-steps", "100000", "--no-progress"], stdout=subprocess.PIPE, text=True)
    try:
        assert any("the first step is done" in line for line in first.stdout)
        refused = myxtts(*arguments, "--max-steps", 4, status=2)
        assert f"in use by process {first.pid} on" in refused.stderr
        assert f"in use by process {first.pid} on" in myxtts(*arguments, "--max-steps", 4, "--reset-training", status=2).stderr
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert (tmp_path / "run" / ".lock").exists()
    done = run(*arguments, "--max-steps", 1)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "run" / ".lock").exists()
