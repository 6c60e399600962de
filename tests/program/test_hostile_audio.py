"""Files that lie. One sentence with path, byte offset and reason, exit 1; no crash, no hang, no large allocation."""
import random
import re
import resource
import struct
import subprocess

import numpy as np
import pytest
import soundfile

from conftest import BINARY, HANG_S, at_once


def fmt_chunk(tag=1, channels=1, rate=22050, bits=16, block=None):
    block = channels * bits // 8 if block is None else block
    return struct.pack("<4sIHHIIHH", b"fmt ", 16, tag, channels, rate, rate * block & 0xFFFFFFFF, block, bits)


def riff(*chunks):
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def data_chunk(payload, claimed=None):
    return b"data" + struct.pack("<I", len(payload) if claimed is None else claimed) + payload


PAYLOAD = bytes(range(100)) * 2
LIES = {
    "empty": b"",
    "four bytes": b"RIFF",
    "text": b"this is no audio file, whatever its name says",
    "zeros": bytes(4096),
    "4 GB in 100 bytes": riff(fmt_chunk(), data_chunk(PAYLOAD[:20], 4_000_000_000)),
    "one byte too many claimed": riff(fmt_chunk(), data_chunk(PAYLOAD, len(PAYLOAD) + 1)),
    "zero channels": riff(fmt_chunk(channels=0), data_chunk(PAYLOAD)),
    "65535 channels": riff(fmt_chunk(channels=65535, block=2), data_chunk(PAYLOAD)),
    "zero rate": riff(fmt_chunk(rate=0), data_chunk(PAYLOAD)),
    "rate of 4 GHz": riff(fmt_chunk(rate=4_000_000_000), data_chunk(PAYLOAD)),
    "zero bits": riff(fmt_chunk(bits=0), data_chunk(PAYLOAD)),
    "unknown codec": riff(fmt_chunk(tag=0x55), data_chunk(PAYLOAD)),
    "wrong block size": riff(fmt_chunk(block=7), data_chunk(PAYLOAD)),
    "no format": riff(data_chunk(PAYLOAD)),
    "no data": riff(fmt_chunk()),
    "no samples": riff(fmt_chunk(), data_chunk(b"")),
    "chunk past the end": riff(b"LIST" + struct.pack("<I", 0xFFFFFF00), fmt_chunk(), data_chunk(PAYLOAD)),
    "rf64 with a huge length": b"RF64\xff\xff\xff\xffWAVEds64" + struct.pack("<IQQQI", 28, 1 << 60, 1 << 60, 1 << 60, 0)
    + fmt_chunk() + b"data\xff\xff\xff\xff" + PAYLOAD,
    "flac that stops": b"fLaC" + bytes(30),
    "ogg that stops": b"OggS" + bytes(40),
}


def run_limited(path, out, extra_bytes=0):
    """Runs `mel` with its address space limited to what the program itself maps, plus what it may allocate."""
    allowed = 2 * path.stat().st_size + (1 << 20) + extra_bytes

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (BASE_BYTES + allowed, BASE_BYTES + allowed))

    return subprocess.run([BINARY, "mel", path, out], capture_output=True, text=True, timeout=HANG_S, preexec_fn=limit)


def base_bytes():
    """Peak address space of a run on a file that is refused at its first byte."""
    low, high = 1 << 20, 1 << 33
    while high - low > 1 << 18:
        middle = (low + high) // 2
        done = subprocess.run([BINARY, "mel", "/dev/null", "/dev/null"], capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (middle, middle)))
        low, high = (low, middle) if done.returncode == 2 else (middle, high)
    return high


BASE_BYTES = base_bytes()


@pytest.mark.parametrize("name", LIES)
def test_a_lying_file_is_one_sentence(tmp_path, name):
    path = tmp_path / "liar.wav"
    path.write_bytes(LIES[name])
    done = run_limited(path, tmp_path / "out.npy")
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(rf"error: \[\w+\] .*{re.escape(str(path))}.*\(at byte \d+\)\n", done.stderr), done.stderr
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3"])
def test_truncated_and_damaged_files_end_quickly_and_tidily(tmp_path, kind):
    rng = random.Random(kind)
    noise = np.random.default_rng(2).normal(0, 0.1, 8000)
    good = tmp_path / f"good.{kind}"
    soundfile.write(good, noise, 22050)
    content = good.read_bytes()
    for trial in range(60):
        damaged = bytearray(content[: rng.randrange(1, len(content))] if trial % 2 else content)
        for _ in range(rng.randrange(1, 20)):
            damaged[rng.randrange(min(len(damaged), 200 if trial % 3 else len(damaged)))] = rng.randrange(256)
        (tmp_path / f"bad-{trial}.{kind}").write_bytes(damaged)

    def run(trial):
        done = subprocess.run([BINARY, "mel", tmp_path / f"bad-{trial}.{kind}", tmp_path / f"{trial}.npy"], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode in (0, 1), f"trial {trial}: exit {done.returncode} {done.stderr}"
        if done.returncode == 1:
            assert done.stderr.startswith("error: [") and "(at byte" in done.stderr and done.stderr.count("\n") == 1
        return done.returncode

    assert sum(at_once(run, range(60))) > 10


def test_streamed_sizes_odd_chunks_and_nan_are_fine(myxtts, tmp_path):
    samples = (np.sin(np.arange(4000) * 0.1) * 9000).astype("<i2").tobytes()
    wild = np.sin(np.arange(4000, dtype="<f4"))
    wild[[5, 50, 500]] = np.nan, np.inf, -np.inf
    cases = {
        "size 0": riff(fmt_chunk(), data_chunk(samples, 0)),
        "size ffffffff": riff(fmt_chunk(), data_chunk(samples, 0xFFFFFFFF)),
        "unpadded odd chunk": riff(b"LIST\x03\0\0\0abc", fmt_chunk(), data_chunk(samples)),
        "padded odd chunk": riff(b"LIST\x03\0\0\0abc\0", fmt_chunk(), data_chunk(samples)),
        "chunks after": riff(fmt_chunk(), data_chunk(samples), b"LIST\x04\0\0\0abcd"),
        "nan": riff(fmt_chunk(tag=3, bits=32), data_chunk(wild.tobytes())),
    }

    def check(name):
        (tmp_path / f"{name}.wav").write_bytes(cases[name])
        myxtts("mel", tmp_path / f"{name}.wav", tmp_path / f"{name}.npy")
        mel = np.load(tmp_path / f"{name}.npy")
        assert mel.shape == (15, 80) and np.isfinite(mel).all(), name

    at_once(check, cases)


def test_wav_files_of_sox(myxtts, tmp_path):
    def check(options):
        path, out = tmp_path / f"{options}.wav", tmp_path / f"{options}.npy"
        subprocess.run(["sox", "-n", "-r", "22050", *options.split(), path, "synth", "0.5", "sine", "440"], check=True)
        myxtts("mel", path, out)
        mel = np.load(out)
        assert mel.shape == (43, 80) and abs(int(mel[20].argmax()) - 10) <= 2, options

    at_once(check, ("-b 8", "-b 16", "-b 24", "-b 32", "-e float -b 32", "-e float -b 64", "-e a-law", "-e mu-law", "-c 6 -b 24"))
