"""Training over several ranks on the CPU: the same losses as one process, whatever their number, and what happens when
one of them is not like the others or is lost."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import wave

import numpy as np
import pytest
from conftest import BINARY, HANG_S

STEPS = 50
FEW = 12  # where it is not about how long ranks stay equal
CONFIG = """
data: {text_tokens: characters, num_workers: 1, metadata_format: id|speaker|text}
training: {log_every: 1, validate_every: 25, checkpoint_every: 25, keep_checkpoints: 2, learning_rate: 0.0003, warmup_steps: 10, dropout: 0.1, seed: 3}
"""
# Large tensors come and go in every step; so their memory does not go back to the system each time.
ALONE = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 32)} | {key: value for key, value in os.environ.items() if not re.match("RANK|LOCAL_|WORLD_|MASTER_|SLURM_|TORCHELASTIC_|GLOO_", key)}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Very short clips of two speakers: a batch has references too."""
    folder = tmp_path_factory.mktemp("ranks")
    corpus = folder / "corpus"
    (corpus / "wavs").mkdir(parents=True)
    rng = np.random.default_rng(5)
    rows = []
    for i in range(40):
        seconds = rng.uniform(0.4, 0.8)
        time_s = np.arange(int(seconds * 22050)) / 22050
        tone = 0.3 * np.sin(2 * np.pi * (120 + 60 * (i % 2)) * time_s * (1 + 0.3 * time_s)) + 0.05 * rng.standard_normal(len(time_s))
        with wave.open(str(corpus / "wavs" / f"{i:02}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(22050)
            file.writeframes((tone * 32767).clip(-32768, 32767).astype("<i2").tobytes())
        rows.append(f"{i:02}|speaker{i % 2}|{''.join(rng.choice(list('abcdef'), int(seconds * 12)))}\n")
    (corpus / "metadata.csv").write_text("".join(rows))
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "few.yaml").write_text(CONFIG.replace("25", "4"))
    (folder / "impatient.yaml").write_text(CONFIG.replace("25", "4").replace("seed: 3", "seed: 3, rank_timeout: 20"))
    (folder / "hasty.yaml").write_text(CONFIG.replace("seed: 3", "seed: 3, rank_timeout: 3"))
    return folder


@pytest.fixture(autouse=True)
def tidy(tiny):
    """Checkpoints are large: what a test leaves behind goes, but for what others compare with."""
    yield
    for run in tiny.iterdir():
        if run.is_dir() and run.name not in ("corpus", "whole", "few"):
            shutil.rmtree(run)


def arguments(tiny, run, *more, steps=STEPS, config="config.yaml", corpus="corpus"):
    return [str(BINARY), "train", *map(str, ("--train-data", tiny / corpus, "--config", tiny / config, "--checkpoint-dir", run,
            "--model-size", "tiny", "--batch-size", 4, "--shape-buckets", 2, "--max-steps", steps, "--device", "cpu", *more))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command, world, port=None, more=lambda rank: [], prefix=lambda rank: [], host="127.0.0.1", **environment):
    """Starts every rank by hand; `command`, `more` and `prefix` may give a rank arguments of its own."""
    command_of = command if callable(command) else lambda rank: command
    port = port or free_port()
    return [subprocess.Popen([*prefix(rank), *command_of(rank), *map(str, more(rank))], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**ALONE, "RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": host, "MASTER_PORT": str(port),
                                  "OMP_NUM_THREADS": "1", **environment}) for rank in range(world)]


def finish(processes, status=0):
    """The finished processes' standard errors."""
    texts = []
    for process in processes:
        out, error = process.communicate(timeout=HANG_S)
        assert process.returncode == status, f"exit {process.returncode}, not {status}\n{out}\n{error}"
        texts.append(error)
    return texts


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def losses(run):
    return {line["step"]: line["loss"] for line in lines(run) if "loss" in line}


def assert_same_losses(run, whole, steps=STEPS):
    one, other = losses(run), losses(whole)
    assert set(one) == set(other) == set(range(1, steps + 1))
    for step in other:
        assert one[step] == pytest.approx(other[step], rel=1e-5), step
    ends, wanted = ([line for line in lines(folder) if "validation_loss" in line] for folder in (run, whole))
    assert [line["step"] for line in ends] == [line["step"] for line in wanted] != []
    for end, want in zip(ends, wanted):
        for name in ("validation_loss", "validation_mel_distance"):
            assert end[name] == pytest.approx(want[name], rel=1e-5), name


@pytest.fixture(scope="module")
def whole(tiny):
    """One process."""
    finish([subprocess.Popen(arguments(tiny, tiny / "whole"), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ALONE)])
    return tiny / "whole"


def test_four_ranks_train_as_one_process(tiny, whole):
    run = tiny / "four"
    finish(start(arguments(tiny, run), 4))
    assert_same_losses(run, whole)
    assert "speaker1" in str(tensors_metadata(run / "step-00000050.safetensors"))
    last = [line for line in lines(run) if "rank_ms" in line][-1]
    assert last["ranks"] == 4 and len(last["rank_ms"]) == len(last["rank_input_wait_ms"]) == 4
    assert last["slowest_rank_ms"] == pytest.approx(max(last["rank_ms"])) == pytest.approx(last["rank_ms"][last["slowest_rank"]])
    assert "ranks" not in lines(whole)[-1]
    left = sorted(path.name for path in run.iterdir())
    assert left == sorted(path.name for path in whole.iterdir())


def tensors_metadata(path):
    from safetensors import safe_open
    with safe_open(path, "np") as file:
        return file.metadata()


@pytest.fixture(scope="module")
def few(tiny):
    """One process, a few steps."""
    finish([subprocess.Popen(arguments(tiny, tiny / "few", steps=FEW, config="few.yaml"), text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=ALONE)])
    return tiny / "few"


@pytest.fixture(scope="module")
def torchrun():
    path = os.path.join(os.path.dirname(sys.executable), "torchrun")
    if not os.path.exists(path):
        pytest.skip("torchrun is not installed")
    return lambda *more: [path, "--no-python", "--nproc-per-node", "2", "--master-port", str(free_port()), *more]


def test_torchrun_starts_ranks_that_train_as_one_process(tiny, whole, torchrun):
    done = subprocess.run([*torchrun(), *arguments(tiny, tiny / "two")], env=ALONE, text=True, capture_output=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert_same_losses(tiny / "two", whole)


def test_a_signal_to_one_rank_stops_all_of_them_and_another_number_resumes(tiny, whole):
    run = tiny / "signal"
    ranks = start(arguments(tiny, run), 2)
    metrics = run / "metrics.jsonl"
    while not metrics.exists() or metrics.read_text().count("\n") < 25:
        assert all(rank.poll() is None for rank in ranks)
        time.sleep(0.05)
    ranks[1].send_signal(signal.SIGTERM)
    finish(ranks)
    stopped = max(losses(run))
    assert 25 <= stopped < STEPS
    finish(start(arguments(tiny, run), 4))
    assert_same_losses(run, whole)


def listening_addresses(process):
    """Of its TCP sockets, as /proc/net writes them: hexadecimal."""
    folder = f"/proc/{process.pid}/fd"
    own = {os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
    rows = [line.split() for table in ("tcp", "tcp6") for line in open(f"/proc/{process.pid}/net/{table}").readlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]


def test_ranks_of_one_machine_listen_on_no_network(tiny):
    run = tiny / "listening"
    ranks = start(arguments(tiny, run, config="few.yaml"), 2)
    wait_for(run / "step-00000004.safetensors", ranks)
    found = [address for rank in ranks for address in listening_addresses(rank)]
    ranks[0].send_signal(signal.SIGTERM)
    finish(ranks)
    assert found and all(int(address, 16) for address in found), found


def wait_for(path, ranks):
    while not path.exists():
        assert all(rank.poll() is None for rank in ranks)
        time.sleep(0.05)


def test_a_rank_that_is_killed_ends_the_others_with_its_name_and_a_restart_resumes(tiny, few):
    run = tiny / "killed"
    ranks = start(arguments(tiny, run, steps=FEW, config="few.yaml"), 2)
    wait_for(run / "step-00000004.safetensors", ranks)
    ranks[1].kill()
    killed = time.monotonic()
    (error,) = finish(ranks[:1], status=1)
    assert time.monotonic() - killed < 30
    finish(ranks[1:], status=-signal.SIGKILL)
    assert "error: [ranks] rank 1 of 2 no longer answers; the newest checkpoint is whole" in error
    finish(start(arguments(tiny, run, steps=FEW, config="few.yaml"), 2))
    assert_same_losses(run, few, FEW)


def test_ranks_meet_although_their_machines_count_restarts_differently(tiny, few):
    """In a store that outlives ranks, as torchrun's does: what an earlier attempt left is in it."""
    TCPStore = pytest.importorskip("torch.distributed").TCPStore
    store = TCPStore("127.0.0.1", free_port(), is_master=True, wait_for_workers=False)
    run = tiny / "restarts"
    for attempt in range(2):
        ranks = start(arguments(tiny, run, steps=FEW, config="impatient.yaml"), 2, port=store.port, TORCHELASTIC_USE_AGENT_STORE="True",
                      prefix=lambda rank: ["env", f"TORCHELASTIC_RESTART_COUNT={attempt * rank}"])
        if attempt == 0:
            wait_for(run / "step-00000004.safetensors", ranks)
            for rank in ranks:
                rank.kill()
                rank.wait()
        else:
            finish(ranks)
    assert_same_losses(run, few, FEW)


def test_rank_0_alone_reads_checkpoints(tiny, few):
    run, other = tiny / "read", tiny / "unread"
    command = lambda rank: arguments(tiny, other if rank else run, steps=FEW, config="few.yaml")
    ranks = start(command, 2)
    wait_for(run / "step-00000004.safetensors", ranks)
    for rank in ranks:
        rank.kill()
        rank.wait()
    other.mkdir(exist_ok=True)
    for file in run.glob("step-*"):
        (other / file.name).touch()  # not one that could be read
    finish(start(command, 2))
    assert_same_losses(run, few, FEW)
    for error in finish(start(command, 2), status=2):
        assert "the newest checkpoint of rank 1 is not to be seen, of rank 0 step-00000012.safetensors" in error


def test_torchrun_restarts_what_is_killed(tiny, few, torchrun):
    run = tiny / "restarted"
    group = subprocess.Popen([*torchrun("--max-restarts", "1", "--monitor-interval", "0.5"), *arguments(tiny, run, steps=FEW, config="few.yaml")],
                             env=ALONE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(run / "step-00000004.safetensors", [group])
    children = [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(name) == group.pid]
    os.kill(max(children), signal.SIGKILL)
    finish([group])
    assert_same_losses(run, few, FEW)


def parent_of(process):
    try:
        return int(open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[1])
    except OSError:  # it has ended
        return 0


def test_a_frozen_rank_is_named_after_the_timeout(tiny):
    run = tiny / "frozen"
    ranks = start(arguments(tiny, run, config="impatient.yaml"), 2)
    wait_for(run / "step-00000004.safetensors", ranks)
    ranks[0].send_signal(signal.SIGSTOP)
    (error,) = finish(ranks[1:], status=1)
    ranks[0].kill()
    finish(ranks[:1], status=-signal.SIGKILL)
    assert "error: [ranks] rank 0 of 2 no longer answers" in error


def test_a_rank_that_freezes_before_a_barrier_is_named_after_the_timeout(tiny):
    """At a barrier others wait as long as rank 0 needs to index a corpus, but only for ranks whose hearts beat."""
    corpus, run = copy_corpus(tiny, "unindexed"), tiny / "barrier"
    rows = [row.split("|", 1) for row in (corpus / "metadata.csv").read_text().splitlines()]
    copies = [(f"{clip}_{i}", clip, row) for i in range(60) for clip, row in rows]
    for name, clip, _ in copies:
        os.link(corpus / "wavs" / f"{clip}.wav", corpus / "wavs" / f"{name}.wav")
    (corpus / "metadata.csv").write_text("".join(f"{name}|{row}\n" for name, _, row in copies))
    ranks = start(arguments(tiny, run, config="hasty.yaml", corpus="unindexed"), 2)
    wait_for(corpus / ".myxtts", ranks)
    ranks[1].send_signal(signal.SIGSTOP)
    (error,) = finish(ranks[:1], status=1)
    ranks[1].kill()
    assert "error: [ranks] rank 1 of 2 no longer answers" in error
    assert not list(run.glob("step-*"))


def copy_corpus(tiny, name):
    shutil.copytree(tiny / "corpus", tiny / name, ignore=shutil.ignore_patterns(".*"))
    return tiny / name


def refused(tiny, run, sentence, more=lambda rank: [], prefix=lambda rank: [], corpora=("corpus", "corpus")):
    ranks = start(lambda rank: arguments(tiny, run, steps=2, corpus=corpora[rank]), 2, more=more, prefix=prefix)
    errors = [process.communicate(timeout=HANG_S)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [2, 2], errors
    for error in errors:
        assert sentence in error, error
    assert not list(run.glob("step-*"))


def test_ranks_that_differ_are_refused_with_the_difference(tiny, myxtts):
    refused(tiny, tiny / "lr", "training.learning_rate of rank 1 is 0.002, of rank 0 0.0003", more=lambda rank: ["--lr", 0.002] if rank else [])
    other = copy_corpus(tiny, "other-corpus")
    rows = (other / "metadata.csv").read_text().splitlines()
    (other / "metadata.csv").write_text("\n".join(rows[:-1]) + "\n")
    refused(tiny, tiny / "data", "the corpus of rank 1 is 39 clips", corpora=("corpus", "other-corpus"))
    refused(tiny, tiny / "validated", "the validation corpus of rank 1 is 39 clips", more=lambda rank: ["--val-data", (tiny / "corpus", other)[rank]])
    refused(tiny, tiny / "validating", "the validation corpus of rank 1 is none", more=lambda rank: [] if rank else ["--val-data", other])
    (other / "metadata.csv").write_text("\n".join(rows).replace("speaker1", "speaker9") + "\n")
    refused(tiny, tiny / "speakers", "the list of speakers of rank 1 is 2, hash", corpora=("corpus", "other-corpus"))
    refused(tiny, tiny / "reset", "--reset-training of rank 1 is given, of rank 0 not given", more=lambda rank: ["--reset-training"] if rank else [])
    refused(tiny, tiny / "cpu", "the device of rank 1 is a CPU with DEFAULT", prefix=lambda rank: ["env", "ATEN_CPU_CAPABILITY=default"] if rank else [])
    version = myxtts("--version").stdout.split()[-1].encode()
    newer = tiny / "newer-myxtts"
    newer.write_bytes(BINARY.read_bytes().replace(b"\0" + version + b"\0", b"\0" + version[:-1] + b"9\0"))
    newer.chmod(0o755)
    # `env` starts another program under the same arguments.
    refused(tiny, tiny / "version", "rank 1 is version", prefix=lambda rank: ["sh", "-c", 'shift; exec "$0" "$@"', newer] if rank else [])


def test_sums_on_gpus_need_several_processes_and_gpus(tiny):
    (tiny / "nccl.yaml").write_text((tiny / "few.yaml").read_text().replace("seed: 3", "seed: 3, rank_sum: nccl"))
    alone = subprocess.run(arguments(tiny, tiny / "alone", steps=1, config="nccl.yaml"), text=True, capture_output=True, env=ALONE, timeout=HANG_S)
    assert alone.returncode == 0 and "one process has nothing to sum: training.rank_sum is not used" in alone.stderr + alone.stdout, alone.stderr
    run = tiny / "devices"
    for error in finish(start(arguments(tiny, run, config="nccl.yaml"), 2), status=2):
        assert "training.rank_sum is nccl, but rank 0 has no GPU" in error and "give training.rank_sum: host" in error
    assert not list(run.glob("step-*"))


def test_a_rank_that_does_not_come_is_named(tiny):
    ranks = start(arguments(tiny, tiny / "alone", config="hasty.yaml"), 3)
    ranks[2].kill()
    for error in finish(ranks[:2], status=2):
        assert "rank 2 of 3 did not come within 3 s" in error


def test_batches_that_cannot_be_shared_are_refused(tiny):
    ranks = start(arguments(tiny, tiny / "shares"), 3)
    texts = [process.communicate(timeout=HANG_S)[1] for process in ranks]
    assert any("3 ranks cannot share batches of 4 clips equally; give --batch-size a multiple of 3" in text for text in texts), texts
    assert all(process.returncode != 0 for process in ranks)


def test_a_missing_variable_is_named(tiny, myxtts):
    for given, sentence in (({"RANK": "0"}, "WORLD_SIZE is 2, but MASTER_ADDR is not set"), ({"RANK": "2"}, "RANK is '2'"), ({}, "RANK is ''")):
        done = subprocess.run(arguments(tiny, tiny / "none"), text=True, capture_output=True, env={**ALONE, "WORLD_SIZE": "2", **given})
        assert done.returncode == 2 and sentence in done.stderr, done.stderr


def test_lengths_that_are_not_static_are_those_of_the_whole_batch(tiny):
    command = lambda run: arguments(tiny, run, "--disable-static-shapes", steps=FEW, config="few.yaml")
    finish([subprocess.Popen(command(tiny / "dynamic"), env=ALONE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)])
    finish(start(command(tiny / "dynamics"), 2))
    assert_same_losses(tiny / "dynamics", tiny / "dynamic", FEW)


def test_a_batch_size_is_chosen_that_fits_into_the_memory_of_every_rank(tiny):
    (tiny / "little").write_text("MemTotal: 1000000 kB\nMemAvailable: 100000 kB\n")
    mounted = ["unshare", "-m", "sh", "-c", f'mount --bind {tiny / "little"} /proc/meminfo && exec "$0" "$@"']
    if subprocess.run([*mounted, "true"], capture_output=True).returncode:
        pytest.skip("another /proc/meminfo needs `unshare` and root's rights")
    run = tiny / "memory"
    command = ["2-32" if word == "4" else word for word in arguments(tiny, run, steps=3)]
    finish(start(command, 2, prefix=lambda rank: mounted if rank else []))
    chosen = int(re.search(r"batch_size: (\d+)", (run / "config.yaml").read_text()).group(1))
    assert 2 <= chosen < 32 and chosen % 2 == 0


def test_ranks_that_are_bound_to_cores_of_their_own_use_all_of_them(tiny):
    if len(os.sched_getaffinity(0)) < 2 or shutil.which("taskset") is None:
        pytest.skip("this takes two cores and `taskset`")
    cores = sorted(os.sched_getaffinity(0))
    (tiny / "tuned.yaml").write_text(CONFIG.replace("num_workers: 1, ", ""))
    ranks = start(arguments(tiny, tiny / "bound", steps=2, config="tuned.yaml"), 2, prefix=lambda rank: ["taskset", "-c", str(cores[rank])])
    outputs = [rank.communicate(timeout=HANG_S) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert "num_workers 1: 1 core" in "".join(outputs[0])


@pytest.fixture
def namespaces():
    """Two network namespaces with an address each, joined by a pair of virtual interfaces."""
    names = [f"myxtts{os.getpid()}{side}" for side in "ab"]

    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True, text=True)

    try:
        if shutil.which("ip") is None or any(ip("netns", "add", name).returncode for name in names):
            pytest.skip("network namespaces need `ip` and root's rights")
        made = ip("link", "add", names[0][-14:], "netns", names[0], "type", "veth", "peer", "name", names[1][-14:], "netns", names[1])
        if made.returncode:
            pytest.skip(f"virtual interfaces cannot be made here: {made.stderr.strip()}")
        for name, address in zip(names, ("10.77.0.1/24", "10.77.0.2/24")):
            for words in (("addr", "add", address, "dev", name[-14:]), ("link", "set", name[-14:], "up"), ("link", "set", "lo", "up")):
                assert ip("-n", name, *words).returncode == 0
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


def test_ranks_on_two_networks_train_as_one_process(tiny, few, namespaces):
    finish(start(arguments(tiny, tiny / "networks", steps=FEW, config="few.yaml"), 2, host="10.77.0.1", prefix=lambda rank: ["ip", "netns", "exec", namespaces[rank]]))
    assert_same_losses(tiny / "networks", few, FEW)


def test_a_vocoder_over_two_ranks_trains_as_one_process(tiny):
    command = ["--target", "vocoder"]
    finish([subprocess.Popen(arguments(tiny, tiny / "vocoder", *command, steps=3), env=ALONE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)])
    finish(start(arguments(tiny, tiny / "vocoders", *command, steps=3), 2))
    one, other = losses(tiny / "vocoders"), losses(tiny / "vocoder")
    assert set(one) == set(other) == {1, 2, 3}
    for step in other:
        assert one[step] == pytest.approx(other[step], rel=1e-4), step


def test_the_report_names_a_slow_rank(tiny):
    """Rank 1 is stopped again and again, as one on a busy machine is."""
    run = tiny / "slow"
    ranks = start(arguments(tiny, run, steps=FEW, config="few.yaml"), 2)
    while any(rank.poll() is None for rank in ranks):
        if (run / "metrics.jsonl").exists() and ranks[1].poll() is None:
            ranks[1].send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            ranks[1].send_signal(signal.SIGCONT)
        time.sleep(0.05)
    finish(ranks)
    done = subprocess.run([BINARY, "diagnose", "report", run, "--json", tiny / "slow.json"], text=True, capture_output=True)
    assert done.returncode == 1, done.stderr  # not healthy
    found = json.loads((tiny / "slow.json").read_text())["ranks"]
    assert found["count"] == 2 and found["slowest"] == 1 and found["slow"]
    assert "rank 1" in done.stdout.lower()
    assert "rank 1" in (run / "report.html").read_text().lower()
