"""The server under load, on loopback.

Claim:    on 2 CPU cores the first sound of a sentence of 15 words comes at most 300 ms after its request, with a tiny voice;
          concurrent streams are heard without gaps as long as the machine makes sound faster than they play it;
          1,000 hostile requests are all answered with the status that is right for their kind, and resident memory stays flat.
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


POST = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def with_length(body):
    return POST + b"Content-Length: %d\r\n\r\n" % len(body) + body


def asking(**fields):
    return with_length(json.dumps(fields).encode())


def clip(rng):
    return base64.b64encode(b"RIFF\xff\xff\xff\xffWAVEfmt " + rng.randbytes(rng.randrange(1, 4000))).decode()


# What is sent, by kind, and the statuses that are right for it.
WHOLE = {
    "not JSON": (lambda rng: with_length(rng.randbytes(rng.randrange(1, 5000))), {400}),
    "text that is too long": (lambda rng: asking(input="a" * rng.choice((5_000, 1_000_000))), {400}),
    "body that is too large": (lambda rng: asking(input="a" * 10_000_000), {413}),
    "control character": (lambda rng: asking(input="a" + chr(rng.choice([*range(9), 11, 12, *range(14, 32)]))), {400}),
    "broken clip": (lambda rng: asking(input="a", reference=clip(rng)), {400}),
    "nested": (lambda rng: with_length(b'{"input":' * rng.randrange(2, 100_000)), {400}),
    "not HTTP": (lambda rng: rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n", {400}),
    "broken chunks": (lambda rng: POST + b"Transfer-Encoding: chunked\r\n\r\n" + rng.randbytes(300) + b"\r\n", {400}),
    "flood of headers": (lambda rng: b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * rng.randrange(20_000, 200_000), {413}),
    "long address": (lambda rng: b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {414}),
    "host of somebody else": (lambda rng: b"GET /v1/voices HTTP/1.1\r\nHost: evil.example\r\n\r\n", {403}),
    "expects to be asked for too much": (lambda rng: POST + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", {413}),
}
SPOKEN = {200, 429}  # more than the queue holds may be asked for at a time


def status_of(answer):
    """Of an answer's bytes, an interim one before it aside. An error must be JSON with a sentence."""
    head, _, body = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    status = int(head[9:12])
    assert status < 400 or json.loads(body)["error"]["message"], head
    return status


def rest_of(one):
    answer = b""
    with contextlib.suppress(ConnectionError):
        while part := one.recv(1 << 16):
            answer += part
    return answer


def whole(one, rng, kind):
    make, right = WHOLE[kind]
    with contextlib.suppress(OSError):
        one.sendall(make(rng))
        one.shutdown(socket.SHUT_WR)
    return status_of(rest_of(one)), right


def leaves_in_its_request(one, _rng):
    one.sendall(POST + b"Content-Length: 1000\r\n\r\n{")
    return None, {None}


def leaves_before_its_answer(one, _rng):
    one.sendall(asking(input="river day " * 40, stream=True))
    return None, {None}


def expands(one, rng):
    """Numbers that are many words; nobody waits for the end."""
    one.sendall(asking(input=rng.choice(("777,777,777 ", "999999999999 ")) * rng.randrange(16, 300), stream=True))
    return status_of(one.recv(12) + b"\r\n\r\n" + (b'{"error": {"message": "it is not read"}}')), SPOKEN


def sends_slowly(one, _rng):
    """A byte now and then; it must be ended."""
    one.settimeout(0.5)
    answer = b""
    for byte in POST + b"X: " + b"y" * 1000:
        with contextlib.suppress(TimeoutError, ConnectionError):
            one.sendall(bytes([byte]))
            answer = one.recv(1 << 16)
        if answer:
            break
    one.settimeout(600)
    return status_of(answer + rest_of(one)), {408}


def reads_slowly(one, _rng):
    """Four kilobytes per quarter of a second, for three seconds. It is not cut off, and leaves in the middle."""
    one.sendall(asking(input="river day " * 20, stream=True, response_format="pcm"))
    answer = b""
    for _ in range(12):
        part = one.recv(4096)
        answer += part
        if not part:
            break
        time.sleep(0.25)
    return status_of(answer), SPOKEN


SLOW = {"slow sender": sends_slowly, "slow reader": reads_slowly}
OTHERS = {"leaves in its request": leaves_in_its_request, "leaves before its answer": leaves_before_its_answer, "text that expands": expands}


def attack(server, kind, seed):
    """A problem, or nothing."""
    rng = random.Random(seed)
    with socket.socket() as one:
        if kind == "slow reader":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        one.settimeout(600)
        one.connect(("127.0.0.1", server.port))
        try:
            status, right = whole(one, rng, kind) if kind in WHOLE else {**OTHERS, **SLOW}[kind](one, rng)
        except Exception as error:  # noqa: BLE001  whatever it is, it is a wrong answer
            return f"{kind}: {type(error).__name__} {error}"
    return None if status in right else f"{kind}: {status} where {right} is right"


def hostility(server, count, seed=1):
    """Eight at a time, and beside them those that take their time, one of each kind in fifty requests."""
    rng = random.Random(seed)
    slow = [kind for kind in SLOW for _ in range(count // 50)]
    quick = rng.choices([*WHOLE, *OTHERS], k=count - len(slow))
    resident, problems = [server.resident_mb()], []
    with concurrent.futures.ThreadPoolExecutor(8) as pool, concurrent.futures.ThreadPoolExecutor(20) as slow_pool:
        waited_for = [slow_pool.submit(attack, server, kind, rng.random()) for kind in slow]
        for at in range(0, len(quick), 100):
            seeds = [rng.random() for _ in quick[at:at + 100]]
            problems += filter(None, pool.map(lambda kind, each: attack(server, kind, each), quick[at:at + 100], seeds))
            resident.append(server.resident_mb())
        problems += filter(None, (each.result() for each in waited_for))
    resident.append(server.resident_mb())
    alive = server.ask("GET", "/health")[0] == 200
    kinds = {kind: (slow + quick).count(kind) for kind in [*WHOLE, *OTHERS, *SLOW]}
    settled = resident[min(3, len(resident) - 1)]
    return {"requests": count, "kinds": kinds, "wrong_answers": problems, "alive": alive,
            "resident_mb_every_100": [round(each, 1) for each in resident], "resident_is_flat": max(resident) < 1.1 * settled}


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
    hostile = result["hostile"]
    bad = hostile and (hostile["wrong_answers"] or not hostile["alive"] or not hostile["resident_is_flat"])
    sys.exit(1 if bad or result["exit_status"] else 0)


if __name__ == "__main__":
    main()
