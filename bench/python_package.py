"""What it takes to install and to import the Python package, and how soon Ctrl-C ends a wait.

Claim:    `pip install .` in a clean environment takes less than 4 minutes on 2 cores; `import myxtts` less than 150 ms;
          Ctrl-C ends a wait for a batch within a second; batches are loaded where there is no torch.
Command:  python bench/python_package.py [--runs N] [--out FILE.json]
Peers:    none.
Spread:   median and maximum of --runs imports and interrupts; one installation, without a compiler cache.
Limit:    `python -c pass` for the import; the 50 ms between two looks for signals for the interrupt.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from mel_peers import commit, cpu_name  # noqa: E402

WAIT = """
import os, sys, time
import myxtts
os.environ["GATE"] = sys.argv[2]
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
try:
    print("waiting", flush=True)
    loader.next()
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
os.remove(sys.argv[2])
"""
LOAD = """
import sys
import myxtts
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu")
print(len(list(loader)), sorted({"torch", "numpy"} & set(sys.modules)))
"""


def seconds(*command, **options):
    start = time.perf_counter()
    subprocess.run([str(one) for one in command], check=True, **options)
    return time.perf_counter() - start


def spread(values_ms):
    return {"median_ms": round(statistics.median(values_ms), 1), "max_ms": round(max(values_ms), 1)}


def interrupt_ms(python, corpus, folder):
    """From the signal to the except clause."""
    gate = folder / "gate"
    gate.touch()
    environment = os.environ | {"LD_PRELOAD": str(folder / "shim.so")}
    with subprocess.Popen([python, "-c", WAIT, corpus, gate], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(random.uniform(0.2, 0.3))  # anywhere between two looks for signals
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        return 1e3 * (float(process.stdout.readline()) - sent)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", help="write the result as JSON")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        seconds(sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", ROOT]
        result = {"install_s": round(seconds(*install, env=os.environ | {"CCACHE_DISABLE": "1"}), 1)}
        for name, code in (("import", "import myxtts"), ("interpreter", "pass")):
            seconds(python, "-c", code, cwd=folder)  # files are in memory from now on
            result[name] = spread([1e3 * seconds(python, "-c", code, cwd=folder) for _ in range(options.runs)])
        corpus = folder / "corpus"
        seconds(os.environ.get("MYXTTS", ROOT / "build" / "myxtts"), "demo-data", corpus, "--clips", 40, stdout=subprocess.DEVNULL)
        loaded = subprocess.run([python, "-c", LOAD, corpus], capture_output=True, text=True, check=True, cwd=folder)
        result["batches_without_torch_and_numpy"] = int(loaded.stdout.removesuffix(" []\n"))
        shim = ROOT / "tests" / "python" / "blocking_reads.c"
        seconds("cc", "-shared", "-fPIC", "-o", folder / "shim.so", shim, "-ldl")
        result["interrupt"] = spread([interrupt_ms(python, corpus, folder) for _ in range(options.runs)])
    result["load_average_before"] = round(load, 1)
    result["hardware"] = f"{len(os.sched_getaffinity(0))} CPU cores, {cpu_name()}"
    result["python"] = sys.version.split()[0]
    result["date"] = datetime.date.today().isoformat()
    result["commit"] = commit()
    result["command"] = "python " + " ".join([str(pathlib.Path("bench") / "python_package.py"), *sys.argv[1:]])
    print(json.dumps(result, indent=1))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
