"""The tests of the Python package import it as it is installed, and compare it with the real program on real files."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("MYXTTS", ROOT / "build" / "myxtts"))
HANG_S = 1800  # a hang guard: no machine, however loaded, takes as long


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
    """Runs Python code in a process of its own; returns the finished process. `preload`: a library to load first."""

    def run(code, *arguments, status=0, preload=None, interrupt_at=None):
        preloads = [path for path in (os.environ.get("LD_PRELOAD"), preload) if path]
        environment = dict(os.environ) | ({"LD_PRELOAD": ":".join(preloads)} if preloads else {})
        command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
        # A shell's background jobs ignore Ctrl-C, and so would all that they start.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            lines = ""
            while interrupt_at is not None:
                line = process.stdout.readline()
                assert line, f"it ended before it printed {interrupt_at}:\n{lines}\n{process.stderr.read()}"
                lines += line
                if line.strip() == interrupt_at:
                    process.send_signal(signal.SIGINT)
                    break
            out, err = process.communicate(timeout=HANG_S)
        assert process.returncode == status, f"exit {process.returncode}, not {status}\n{lines}{out}\n{err}"
        return subprocess.CompletedProcess(command, status, lines + out, err)

    return run


@pytest.fixture(scope="session")
def blocking_reads(tmp_path_factory):
    """A library to preload: while the file GATE exists, whoever opens a .wav file waits."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(
        """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void wait_at_gate(const char* path) {
  const char* gate = getenv("GATE");
  const size_t length = strlen(path);
  if (gate == 0 || length < 4 || strcmp(path + length - 4, ".wav") != 0) return;
  while (access(gate, F_OK) == 0) usleep(10000);
}
#define OPEN(name)                                                             \\
  int name(const char* path, int flags, ...) {                                 \\
    static int (*next)(const char*, int, ...);                                 \\
    if (next == 0) next = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name); \\
    va_list rest;                                                              \\
    va_start(rest, flags);                                                     \\
    const int mode = va_arg(rest, int);                                        \\
    va_end(rest);                                                              \\
    wait_at_gate(path);                                                        \\
    return next(path, flags, mode);                                            \\
  }
OPEN(open)
OPEN(open64)
"""
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True)
    return str(folder / "shim.so")
