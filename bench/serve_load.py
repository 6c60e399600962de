"""The server under load, on loopback.

Claim:    on 2 CPU cores the first sound of a sentence of 15 words comes at most 300 ms after its request, with a tiny voice;
          concurrent streams are heard without gaps as long as the machine makes sound faster than they play it;
          1,000 hostile requests are all answered, and leave resident memory where it was.
Command:  python bench/serve_load.py --checkpoint VOICE [--streams 1,2,4,8] [--hostile 1000] [--out FILE.json]
Peers:    none in this run: the first sound's parts are those of `myxtts bench synth`.
Spread:   median, 95th percentile and maximum over --rounds rounds; the first request is a warm-up and not counted.
Limit:    a stream that plays in real time may not wait: a gap is the time that a listener would have heard nothing.
"""
import argparse
import base64
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import pathlib
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SENTENCE = "The old man walked slowly along the river bank and watched the birds until evening."


class Server:
    def __init__(self, binary, checkpoint, flags):
        command = [binary, "serve", "--checkpoint", checkpoint, "--port", "0", *flags]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+);", self.process.stdout.readline())[1])

    def ask(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def resident_mb(self):
        return float(re.search(rb"process_resident_memory_bytes (\d+)", self.ask("GET", "/metrics")[1])[1]) / 1e6

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(600)


def listen(server, rate, text, seed):
    """One listener, who plays what has come: seconds to the first sound, of sound, and of silence where there should be sound."""
    body = json.dumps({"input": text, "seed": seed, "stream": True, "response_format": "pcm"})
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        first, sound_s, gap_s, runs_out = None, 0.0, 0.0, 0.0
        while part := answer.read1(1 << 20):
            now = time.monotonic()
            if first is None:
                first = runs_out = now
            gap_s += max(0.0, now - runs_out)
            seconds = len(part) / 2 / rate
            runs_out = max(runs_out, now) + seconds
            sound_s += seconds
    return {"first_s": first - start, "sound_s": sound_s, "gap_s": gap_s, "whole_s": time.monotonic() - start}


def spread(values):
    ordered = sorted(values)
    return {"median": round(1e3 * statistics.median(ordered), 1), "p95": round(1e3 * ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
            "max": round(1e3 * ordered[-1], 1)}


def load(server, rate, text, streams, rounds):
    heard, begun = [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        for round_number in range(rounds):
            heard += pool.map(lambda i: listen(server, rate, text, round_number * streams + i), range(streams))
    passed = time.monotonic() - begun
    return {"streams": streams, "rounds": rounds, "first_sound_ms": spread([each["first_s"] for each in heard]),
            "gap_ms": spread([each["gap_s"] for each in heard]), "streams_with_a_gap": sum(each["gap_s"] > 0 for each in heard),
            "x_real_time": round(sum(each["sound_s"] for each in heard) / passed, 1)}


def hostile_request(rng):
    """Bytes to send, and whether they end in a request that must be answered."""
    post = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

    def whole(body):
        return post + b"Content-Length: %d\r\n\r\n" % len(body) + body, True

    kind = rng.randrange(9)
    if kind == 0:
        return whole(rng.randbytes(rng.randrange(1, 5000)))
    if kind == 1:
        return whole(json.dumps({"input": "a" * rng.choice((5_000, 1_000_000, 10_000_000))}).encode())
    if kind == 2:
        return whole(json.dumps({"input": "a" + chr(rng.randrange(32))}).encode()[:-1].replace(b"\\", b"\\", 1) + b"}")
    if kind == 3:
        clip = b"RIFF\xff\xff\xff\xffWAVEfmt " + rng.randbytes(rng.randrange(1, 4000))
        return whole(json.dumps({"input": "a", "reference": base64.b64encode(clip).decode()}).encode())
    if kind == 4:
        return whole(b'{"input":' * rng.randrange(1, 100_000))
    if kind == 5:
        return rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n", True
    if kind == 6:
        return post + b"Transfer-Encoding: chunked\r\n\r\n" + rng.randbytes(300) + b"\r\n", True
    if kind == 7:  # leaves in the middle of its own request
        return post + b"Content-Length: 1000\r\n\r\n{", False
    return whole(json.dumps({"input": "river day " * 40, "stream": True}).encode())[0], False  # leaves before its answer


def attack(server, rng):
    """A problem, or nothing."""
    data, answered = hostile_request(rng)
    with socket.create_connection(("127.0.0.1", server.port), timeout=600) as one:
        with contextlib.suppress(OSError):
            one.sendall(data)
            if answered:
                one.shutdown(socket.SHUT_WR)
        if not answered:
            return None
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := one.recv(1 << 16):
                answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        status = int(head[9:12])
        assert 400 <= status < 500 and json.loads(body)["error"]["message"], head
    except Exception as error:  # noqa: BLE001  whatever it is, it is a wrong answer
        return f"{data[:60]!r}: {answer[:80]!r} {error}"
    return None


def hostility(server, count, seed=1):
    rng = random.Random(seed)
    seeds = [rng.randrange(1 << 60) for _ in range(count)]
    resident, problems = [server.resident_mb()], []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for at in range(0, count, 100):
            problems += [found for found in pool.map(lambda each: attack(server, random.Random(each)), seeds[at:at + 100]) if found]
            resident.append(server.resident_mb())
    alive = server.ask("GET", "/health")[0] == 200
    return {"requests": count, "wrong_answers": problems, "alive": alive, "resident_mb_every_100": [round(each, 1) for each in resident]}


def cpu_name():
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def measure(server, options, counts):
    rate = json.loads(server.ask("GET", "/v1/voices")[1])["sample_rate"]
    listen(server, rate, options.text, 0)
    result = {"what": "speech over HTTP on loopback: first sound, concurrent streams and their gaps", "text": options.text,
              "device": options.device, "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "load_average_before": [round(each, 1) for each in os.getloadavg()],
              "commit": subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip(),
              "date": datetime.date.today().isoformat(), "command": " ".join(["python", *sys.argv]), "load": [], "hostile": None}
    for streams in counts:
        result["load"].append(load(server, rate, options.text, streams, options.rounds))
        print(json.dumps(result["load"][-1]), flush=True)
    if options.hostile:
        result["hostile"] = hostility(server, options.hostile)
        print(json.dumps(result["hostile"]), flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--binary", default=os.environ.get("MYXTTS", ROOT / "build" / "myxtts"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--text", default=SENTENCE)
    parser.add_argument("--streams", default="1,2,4,8")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--hostile", type=int, default=0, metavar="N")
    parser.add_argument("--out")
    options = parser.parse_args()
    counts = [int(each) for each in options.streams.split(",") if each]
    flags = ["--device", options.device, "--queue", str(max(counts, default=1) + 8)]
    with Server(options.binary, options.checkpoint, flags) as server:
        result = measure(server, options, counts)
    result["exit_status"] = server.process.returncode
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    bad = result["hostile"] and (result["hostile"]["wrong_answers"] or not result["hostile"]["alive"])
    sys.exit(1 if bad or result["exit_status"] else 0)


if __name__ == "__main__":
    main()
