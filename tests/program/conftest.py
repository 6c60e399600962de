"""The tests of the program run the real binary on real files."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("MYXTTS", ROOT / "build" / "myxtts"))
HANG_S = 1800  # a hang guard: no machine, however loaded, takes as long
sys.path.insert(0, str(ROOT / "bench"))  # for the twin


def at_once(work, items):
    """The results of work on each item, as many at a time as there are cores: most of a short run is loading the program."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


def build_shim(tmp_path_factory, source):
    """Builds a library to preload, which stands between the program and the system. Returns its path."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True)
    return str(folder / "shim.so")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def myxtts():
    """Runs the program; `status` is what it must exit with. Returns the finished process."""

    def run(*arguments, status=0, **more):
        done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S, **more)
        assert done.returncode == status, f"exit {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}"
        if status != 0:
            assert done.stderr.startswith("error: ["), done.stderr
            assert done.stderr.count("\n") == 1, f"one sentence, please:\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def corpus(myxtts, tmp_path_factory):
    """A demo corpus that tests only read."""
    folder = tmp_path_factory.mktemp("corpus") / "demo"
    myxtts("demo-data", folder, "--clips", 40, "--seed", 3)
    return folder


@pytest.fixture(scope="session")
def voice(myxtts, tmp_path_factory):
    """A voice of three speakers in two languages, with a vocoder beside it, of a few steps each: it babbles, but exactly."""
    folder = tmp_path_factory.mktemp("voice")
    myxtts("demo-data", folder / "corpus", "--clips", 30, "--speakers", 3, "--languages", "en,fa")
    (folder / "voice.yaml").write_text("data: {text_tokens: characters}\n")
    (folder / "vocoder.yaml").write_text("training: {adversarial: false}\n")
    train = ("train", "--train-data", folder / "corpus", "--device", "cpu")
    myxtts(*train, "--config", folder / "voice.yaml", "--checkpoint-dir", folder / "voice", "--batch-size", 4, "--shape-buckets", 2,
           "--max-mel-frames", 240, "--max-steps", 4)
    myxtts(*train, "--target", "vocoder", "--config", folder / "vocoder.yaml", "--checkpoint-dir", folder / "vocoder", "--batch-size", 2,
           "--max-steps", 1)
    shutil.copy(folder / "vocoder" / "step-00000001.safetensors", folder / "voice" / "vocoder.safetensors")
    return folder / "voice"
