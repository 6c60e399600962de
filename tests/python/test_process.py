"""What surrounds the loader in a process: signals, forks, the interpreter's end, what is installed."""
import ast
import pathlib

import pytest

OPEN = """
import os, sys
import myxtts
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
"""


def test_ctrl_c_ends_a_wait_and_nothing_is_lost(corpus, python, blocking_reads, tmp_path):
    (tmp_path / "gate").touch()
    code = """
import os, sys
import myxtts
myxtts.prepare(sys.argv[1])
os.environ["GATE"] = sys.argv[2]
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
try:
    print("waiting", flush=True)
    loader.next()
except KeyboardInterrupt:
    print("interrupted")
os.remove(sys.argv[2])
print([batch.index for batch in loader] == list(range(len(loader))))
"""
    done = python(code, corpus, tmp_path / "gate", preload=blocking_reads, interrupt_at="waiting", limit_s=600)  # it would wait for ever
    assert done.stdout == "waiting\ninterrupted\nTrue\n" and done.stderr == ""


def test_a_signals_handler_may_close_the_loader_that_is_waited_for(corpus, python, blocking_reads, tmp_path):
    (tmp_path / "gate").touch()
    code = """
import os, signal, sys
import myxtts
myxtts.prepare(sys.argv[1])
os.environ["GATE"] = sys.argv[2]
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
def close(*_):
    loader.close()
    os.remove(sys.argv[2])
signal.signal(signal.SIGALRM, close)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    loader.next()
except myxtts.Error as error:
    print(error.message)
"""
    assert python(code, corpus, tmp_path / "gate", preload=blocking_reads, limit_s=600).stdout == "it is closed\n"


def test_the_collector_lets_others_run_while_a_loader_ends(corpus, python, blocking_reads, tmp_path):
    (tmp_path / "gate").touch()
    code = """
import os, sys, threading, time
import myxtts
myxtts.prepare(sys.argv[1])
os.environ["GATE"] = sys.argv[2]
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
def open_gate():
    time.sleep(0.2)
    os.remove(sys.argv[2])
threading.Thread(target=open_gate).start()
del loader
print("gone")
"""
    assert python(code, corpus, tmp_path / "gate", preload=blocking_reads, limit_s=600).stdout == "gone\n"


def test_a_fork_while_a_thread_waits_ends_well(corpus, python, blocking_reads, tmp_path):
    (tmp_path / "gate").touch()
    code = """
import os, sys, threading, time
import myxtts
myxtts.prepare(sys.argv[1])
os.environ["GATE"] = sys.argv[2]
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
thread = threading.Thread(target=loader.next)
thread.start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.remove(sys.argv[2])
thread.join()
"""
    assert python(code, corpus, tmp_path / "gate", preload=blocking_reads, limit_s=600).stdout == "7\n"


def test_a_fork_is_refused_with_a_sentence_and_both_processes_end_well(corpus, python):
    code = OPEN + """
batch = loader.next()
child = os.fork()
if child == 0:
    for use in (loader.next, loader.stats, lambda: list(loader)):
        try:
            use()
        except myxtts.Error as error:
            print(error.message, "|", error.way_out, flush=True)
    del batch
    loader.close()
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(loader)) == len(loader) - 1)
"""
    lines = python(code, corpus).stdout.splitlines()
    assert len(lines) == 4 and lines[3] == "7 True"
    assert all("from which this one was forked" in line and "open a Loader in this process" in line for line in lines[:3])


def test_the_interpreter_ends_with_live_loaders_and_batches(corpus, python):
    code = OPEN + """
import numpy
first = loader.next()
mel, cycle = numpy.asarray(loader.next().mel), []
cycle.append((cycle, loader, first))
del first
other = myxtts.Loader(sys.argv[1], batch_size=2, device="cpu")
"""
    assert python(code, corpus).stderr == ""


def test_the_interpreter_ends_while_a_thread_waits(corpus, python):
    code = OPEN + """
import threading
taken = threading.Event()
def take():
    while True:
        try:
            loader.next()
        except myxtts.Error:
            return
        taken.set()
threading.Thread(target=take, daemon=True).start()
taken.wait()
"""
    assert python(code, corpus).stderr == ""


def test_the_interpreter_ends_while_threads_compute(corpus, python):
    code = OPEN + """
import threading, time
batch, samples, started = loader.next(), memoryview(bytes(4 * 500_000)).cast("f"), threading.Barrier(6)
def forever(work):
    started.wait()
    while True:
        try:
            work()
        except myxtts.Error:
            pass
other = lambda: myxtts.Loader(sys.argv[1], batch_size=2, device="cpu", pipeline_buffer_size=2).next()
for work in (batch.cpu, batch.hash, loader.stats, lambda: myxtts.mel(samples), other):
    threading.Thread(target=forever, args=[work], daemon=True).start()
started.wait()
time.sleep(0.2)
"""
    for _ in range(3):
        assert python(code, corpus, limit_s=600).stderr == ""


def test_it_loads_batches_where_neither_torch_nor_numpy_can_be_seen(corpus, python):
    code = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "jax"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
""" + OPEN + """
mel = memoryview(loader.next().mel)
print(mel.format, mel.ndim, mel.shape[2], mel.readonly)
made = memoryview(myxtts.mel(memoryview(bytes(2 * 22050)).cast("h")))
print(made.shape)
print(sorted({"torch", "numpy", "jax"} & set(sys.modules)))
"""
    assert python(code, corpus).stdout == "f 3 80 False\n(86, 80)\n[]\n"


def test_a_loader_is_not_sent_to_another_process(corpus, python):
    code = OPEN + """
import pickle
try:
    pickle.dumps(loader)
except TypeError as error:
    print(error)
"""
    assert "open one there" in python(code, corpus).stdout


@pytest.mark.parametrize(
    "name, expected",
    [
        ("train_step", "epoch 2: loss"),
        ("diagnose_dataloader", "batch time"),
        ("matcha_dataset", "y [4, 80, "),
        ("lightning_trainer", "steps, loss"),
        ("accelerate_loop", "epoch 1: loss"),
    ],
)
def test_an_example_runs(root, corpus, python, name, expected):
    pytest.importorskip({"lightning_trainer": "lightning", "accelerate_loop": "accelerate"}.get(name, "torch"))
    extra = ["--batches", "8"] if name == "diagnose_dataloader" else ["--batch-size", "4"]
    code = "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    assert expected in python(code, root / "examples" / "python" / f"{name}.py", corpus, *extra).stdout


def test_the_stubs_are_those_of_the_module():
    import myxtts

    def names(body):
        found = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        return found | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}

    def public(thing):
        return {name for name in vars(thing) if not name.startswith("_")}

    stubs = ast.parse(pathlib.Path(myxtts.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
    assert {name for name in names(stubs.body) if not name.startswith("_")} == public(myxtts._core)
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            assert {name for name in names(node.body) if not name.startswith("_")} == public(getattr(myxtts._core, node.name))
    assert (pathlib.Path(myxtts.__file__).parent / "py.typed").exists()


def test_the_version_is_that_of_the_program(program):
    import myxtts

    assert myxtts.__version__ in program("--version").stdout
