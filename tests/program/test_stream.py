"""Samples that are heard before the last are made, with the real binary."""
import shutil
import subprocess

import pytest
from conftest import BINARY, HANG_S

LONG = "Rivers run by day. Sand and sea; wind and rain! All day the birds sing near the river, and the river runs by. End"


def streamed(*arguments, **more):
    return subprocess.run([BINARY, "synth", "--stream", *map(str, arguments)], capture_output=True, timeout=HANG_S, check=True, **more)


@pytest.mark.parametrize("text", ["river", LONG, LONG.replace(".", "").replace(";", "")])
@pytest.mark.parametrize("vocoder", [True, False], ids=["vocoder", "griffin-lim"])
def test_a_stream_has_the_samples_of_the_file(myxtts, voice, tmp_path, text, vocoder):
    if not vocoder:
        shutil.copytree(voice, tmp_path / "voice")
        (tmp_path / "voice" / "vocoder.safetensors").unlink()
        voice = tmp_path / "voice"
    say = ("--checkpoint", voice, "--text", text, "--seed", 5, "--speed", 0.5)
    myxtts("synth", *say, "--out", tmp_path / "whole.wav")
    done = streamed(*say)
    assert done.stdout == (tmp_path / "whole.wav").read_bytes()[44:] and len(done.stdout) > 1000
    assert done.stderr.decode() == "raw PCM: 16-bit little-endian, mono, 22050 Hz\n"


def test_the_first_samples_come_before_the_last_text_is_read(voice, tmp_path):
    """The second text cannot be said; the first one is out by then."""
    (tmp_path / "texts").write_text("river\nriver \u20ac\n")
    done = subprocess.run([BINARY, "synth", "--stream", "--checkpoint", voice, "--text-file", tmp_path / "texts"], capture_output=True,
                          timeout=HANG_S)
    assert done.returncode == 2 and len(done.stdout) > 1000 and b"error: [" in done.stderr


def test_a_reader_that_leaves_ends_it_quietly(voice):
    command = f"'{BINARY}' synth --stream --checkpoint '{voice}' --text '{LONG * 20}' | head -c 1000 | wc -c; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=HANG_S)
    assert done.stdout.split() == ["1000", "0"] and done.stderr.count("\n") == 1


def test_a_stream_and_a_file_are_not_asked_for_at_once(myxtts, voice, tmp_path):
    both = myxtts("synth", "--checkpoint", voice, "--text", "a", "--out", tmp_path / "x.wav", "--stream", status=2)
    assert "--out and --stream" in both.stderr and not both.stdout
    assert "--stream" in myxtts("synth", "--checkpoint", voice, "--text", "a", status=2).stderr
