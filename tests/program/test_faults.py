"""A file system that fails: reads of one clip give EIO, end early, or come in small pieces, by a library put in front of
the system's own `pread`."""
import json
import os
import shutil
import subprocess

import pytest
from conftest import BINARY, HANG_S, build_shim

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static ssize_t faulty(int file, void* into, size_t count, off_t at, const char* name) {
  ssize_t (*real)(int, void*, size_t, off_t) = dlsym(RTLD_NEXT, name);
  const char* clip = getenv("FAULT_CLIP"); const char* fault = getenv("FAULT");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (clip && fault && length > 0 && (path[length] = 0, strstr(path, clip))) {
    if (!strcmp(fault, "eio") && at > 1000) { errno = EIO; return -1; }
    if (!strcmp(fault, "interrupted") && rand() % 2) { errno = EINTR; return -1; }
    if (!strcmp(fault, "short") && count > 777) count = 777;
    if (!strcmp(fault, "ends") && at + (off_t)count > 5000) { if (at >= 5000) return 0; count = 5000 - at; }
  }
  return real(file, into, count, at);
}
ssize_t pread(int f, void* p, size_t n, off_t at) { return faulty(f, p, n, at, "pread"); }
ssize_t pread64(int f, void* p, size_t n, off_t at) { return faulty(f, p, n, at, "pread64"); }
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return build_shim(tmp_path_factory, SHIM)


def batches(folder, out, **environment):
    command = [BINARY, "batches", "--train-data", folder, "--batch-size", "4", "--num-batches", "99", "--device", "cpu", "--json", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())["batches"]


@pytest.mark.parametrize("fault", ["eio", "ends", "short", "interrupted"])
def test_a_clip_that_cannot_be_read_is_replaced_and_slow_reads_are_waited_for(myxtts, corpus, shim, tmp_path, fault):
    folder, out = tmp_path / "corpus", tmp_path / "out.json"
    shutil.copytree(corpus, folder)
    sound = batches(folder, out)
    clip = sound[1]["ids"][2]
    got = batches(folder, out, LD_PRELOAD=str(shim), FAULT=fault, FAULT_CLIP=clip + ".wav")
    if fault in ("short", "interrupted"):
        assert got == sound
        return
    (bad,) = [bad for batch in got for bad in batch["replaced"]]
    assert bad["id"] == clip and ("Input/output error" if fault == "eio" else "cut short") in bad["reason"]
    assert [batch["shape"] for batch in got] == [batch["shape"] for batch in sound]
    assert sum(a != b for a, b in zip(sound, got)) == 1
