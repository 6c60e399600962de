"""The tests of the Python package import it as it is installed, and compare it with the real program on real files."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import wave

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("MYXTTS", ROOT / "build" / "myxtts"))
HANG_S = 1800  # a hang guard: no machine, however loaded, takes as long


def write_wav(path, samples, rate):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(rate)
        file.writeframes(samples.astype(np.int16).tobytes())


def noise(count, seed=0):
    return np.random.default_rng(seed).normal(0, 3000, count).clip(-32768, 32767).astype(np.int16)


def mel_of_program(program, tmp_path, samples, rate, preset, device="cpu"):
    write_wav(tmp_path / "in.wav", samples, rate)
    program("mel", tmp_path / "in.wav", tmp_path / "out.npy", "--preset", preset, "--device", device)
    return np.load(tmp_path / "out.npy")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def program():
    """Runs the program; `status` is what it must exit with, None: any. Returns the finished process."""

    def run(*arguments, status=0):
        done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S)
        assert status is None or done.returncode == status, f"exit {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def corpus(program, tmp_path_factory):
    """A demo corpus of two speakers that tests only read."""
    folder = tmp_path_factory.mktemp("corpus") / "demo"
    program("demo-data", folder, "--clips", 40, "--speakers", 2, "--seed", 3)
    return folder


@pytest.fixture(scope="session")
def python():
    """Runs Python code in a process of its own; returns the finished process. `preload`: a library to load first;
    `limit_s`: when it is killed, because it hangs."""

    def run(code, *arguments, status=0, preload=None, interrupt_at=None, limit_s=HANG_S):
        preloads = [path for path in (os.environ.get("LD_PRELOAD"), preload) if path]
        environment = dict(os.environ) | ({"LD_PRELOAD": ":".join(preloads)} if preloads else {})
        command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
        # A shell's background jobs ignore Ctrl-C, and so would all that they start.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            limit = threading.Timer(limit_s, process.kill)
            limit.daemon = True
            limit.start()
            lines = ""
            while interrupt_at is not None:
                line = process.stdout.readline()
                assert line, f"it ended before it printed {interrupt_at}:\n{lines}\n{process.stderr.read()}"
                lines += line
                if line.strip() == interrupt_at:
                    process.send_signal(signal.SIGINT)
                    break
            out, err = process.communicate()
            limit.cancel()
        assert process.returncode == status, f"exit {process.returncode}, not {status}\n{lines}{out}\n{err}"
        return subprocess.CompletedProcess(command, status, lines + out, err)

    return run


@pytest.fixture(scope="session")
def blocking_reads(tmp_path_factory):
    """A library to preload: while the file GATE exists, whoever opens a .wav file waits."""
    folder = tmp_path_factory.mktemp("shim")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "shim.so", ROOT / "tests" / "python" / "blocking_reads.c", "-ldl"], check=True)
    return str(folder / "shim.so")
