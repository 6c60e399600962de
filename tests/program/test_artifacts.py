"""The formats of a run's files, against the programs that other people read and write them with."""
import html.parser
import io
import json
import math
import pathlib
import random
import shutil
import struct
import subprocess

import numpy
import PIL.Image
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
import xxhash
from conftest import BINARY, HANG_S
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TOOL = pathlib.Path(BINARY).parent / "tests" / "artifacts_tool"


def tool(*arguments, status=0, **more):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S, **more)
    assert done.returncode == status, done.stderr
    return done


def test_safetensors_go_to_python_and_back(tmp_path):
    torch.manual_seed(1)
    tensors = {
        "flags": torch.tensor([True, False, True]),
        "encoder.weight": torch.randn(7, 5),
        "half": torch.randn(3, 3).to(torch.bfloat16),
        "float16": torch.randn(3).half(),
        "double": torch.randn(2, 2, 2).double(),
        "step": torch.tensor(2**40),
        "empty": torch.zeros(0, 4),
        "نام": torch.arange(5, dtype=torch.uint8),
    }
    safetensors.torch.save_file(tensors, tmp_path / "a.safetensors", metadata={"format": "pt", "متن": "سلام \"x\"\n"})
    tool("copy", tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    tool("copy", tmp_path / "b.safetensors", tmp_path / "c.safetensors")  # with its checksums checked
    assert (tmp_path / "b.safetensors").read_bytes() == (tmp_path / "c.safetensors").read_bytes()

    back = safetensors.torch.load_file(tmp_path / "b.safetensors")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and torch.equal(back[name], tensor), name
    with safetensors.safe_open(tmp_path / "b.safetensors", "np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "pt" and metadata["متن"] == "سلام \"x\"\n"

    raw = (tmp_path / "b.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header, data = raw[8:8 + length], raw[8 + length:]
    assert (8 + length) % 64 == 0
    assert metadata["checksum"] == xxhash.xxh64_hexdigest(data)
    without = header.replace(metadata["header_checksum"].encode(), b"0" * 16, 1)
    assert metadata["header_checksum"] == xxhash.xxh64_hexdigest(without)


def test_random_safetensors_survive_both_ways(tmp_path):
    dice = random.Random(5)
    for _ in range(15):
        tensors = {}
        for number in range(dice.randrange(12)):
            shape = [dice.randrange(6) for _ in range(dice.randrange(4))]
            kind = dice.choice(["float32", "float64", "int64", "uint8", "int16", "float16"])
            tensors[f"t{number}"] = numpy.array(numpy.random.default_rng(number).normal(size=shape) * 50, dtype=kind)
        safetensors.numpy.save_file(tensors, tmp_path / "a")
        tool("copy", tmp_path / "a", tmp_path / "b")
        back = safetensors.numpy.load_file(tmp_path / "b")
        assert back.keys() == tensors.keys()
        assert all(numpy.array_equal(back[name], tensors[name]) and back[name].dtype == tensors[name].dtype for name in tensors)


def test_a_damaged_file_is_refused_by_name(tmp_path):
    safetensors.numpy.save_file({"a": numpy.arange(100.0)}, tmp_path / "a")
    tool("copy", tmp_path / "a", tmp_path / "b")
    raw = bytearray((tmp_path / "b").read_bytes())
    raw[-3] ^= 4
    (tmp_path / "b").write_bytes(raw)
    done = tool("copy", tmp_path / "b", tmp_path / "c", status=2)
    assert done.stderr == f"error: [safetensors] {tmp_path}/b: its data do not match their checksum; the file is damaged\n"
    assert not (tmp_path / "c").exists()


def test_a_full_disk_keeps_the_old_file(tmp_path):
    """A file system of 256 KiB, in a mount namespace of its own."""
    isolated = ["unshare", "--user", "--map-root-user", "--mount"]
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=256k none {small}"
    if shutil.which("unshare") is None or subprocess.run([*isolated, "sh", "-c", mount], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us mount a small file system")
    safetensors.numpy.save_file({"a": numpy.arange(8.0)}, tmp_path / "fits")
    safetensors.numpy.save_file({"a": numpy.zeros(1 << 18)}, tmp_path / "too_large")
    script = f"""{mount} && {TOOL} copy {tmp_path}/fits {small}/x && cp {small}/x {tmp_path}/before
        {TOOL} copy {tmp_path}/too_large {small}/x; echo status $?; ls -A {small}; cmp {small}/x {tmp_path}/before && echo same"""
    done = subprocess.run([*isolated, "sh", "-c", script], capture_output=True, text=True, timeout=HANG_S)
    assert done.stdout.split() == ["status", "1", "x", "same"], done.stdout + done.stderr
    assert done.stderr == f"error: [write] {small}/x: No space left on device\n"


def test_heatmaps_decode(tmp_path):
    dice = random.Random(3)
    for rows, columns, scale, flip in [(1, 1, 1, 0), (2, 3, 1, 1), (80, 97, 1, 1), (13, 7, 5, 0), (3, 400, 9, 1), (40, 300, 2, 1)]:
        values = numpy.array([dice.choice([0, 1, dice.random()]) for _ in range(rows * columns)]).reshape(rows, columns)
        values.flat[0], values.flat[-1] = 0, 1
        words = " ".join(map(str, values.flat))
        tool("heatmap", tmp_path / "a.png", rows, columns, scale, flip, input=words)
        picture = PIL.Image.open(tmp_path / "a.png")
        picture.load()
        assert picture.mode == "P" and picture.size == (columns * scale, rows * scale)
        shades = numpy.asarray(picture)
        assert (shades == shades[::scale, ::scale].repeat(scale, 0).repeat(scale, 1)).all()
        shades = shades[::scale, ::scale][::-1 if flip else 1]
        if values.size > 1:
            assert numpy.abs(shades - values * 254).max() <= 0.501


def test_runs_of_every_length_decode(tmp_path):
    """Each length that a match can have, and the ends of each kind of it."""
    for columns in range(1, 600, 7):
        values = [1.0] * columns + [0.0] * columns
        tool("heatmap", tmp_path / "a.png", 2, columns, 1, 0, input=" ".join(map(str, values)))
        shades = numpy.asarray(PIL.Image.open(tmp_path / "a.png"))
        assert (shades[0] == 254).all() and (shades[1] == 0).all()


def test_the_palette_grows_lighter_evenly_and_nan_is_red(tmp_path):
    words = " ".join(map(str, [*range(255), "nan", "inf", "-inf"]))
    tool("heatmap", tmp_path / "a.png", 1, 258, 1, 0, input=words)
    colours = numpy.asarray(PIL.Image.open(tmp_path / "a.png").convert("RGB"))[0].astype(float)
    linear = numpy.where(colours <= 10, colours / 255 / 12.92, ((colours / 255 + 0.055) / 1.055) ** 2.4)
    luminance = linear[:255] @ [0.2126, 0.7152, 0.0722]
    lightness = numpy.cbrt(luminance)
    steps = numpy.diff(lightness)
    assert steps.min() > -0.004 and numpy.diff(lightness[::16]).min() > 0.02
    assert colours[0, 2] > colours[0, 0] and colours[0].max() < 90, "dark blue"
    assert colours[254, 0] > 200 and colours[254, 1] > 200 and colours[254, 2] < 170, "yellow"
    assert colours[255, 0] > 200 and colours[255, 1:].max() < 60, "not a number"
    assert (colours[256] == colours[254]).all() and (colours[257] == colours[0]).all()


def test_tensorboard_reads_the_events(tmp_path):
    tool("events", tmp_path / "runs")
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    losses = events.Scalars("loss")
    assert [(event.step, event.value) for event in losses] == [(i, numpy.float32(1 / (i + 1))) for i in range(5)]
    assert all(abs(event.wall_time - losses[0].wall_time) < 5 and event.wall_time > 1.7e9 for event in losses)

    (image,) = events.Images("mel")
    assert (image.step, image.width, image.height) == (3_000_000_000, 3, 2)
    picture = PIL.Image.open(io.BytesIO(image.encoded_image_string))
    assert numpy.asarray(picture).tolist() == [[152, 203, 254], [0, 51, 102]]

    (sound,) = events.Audio("voice")
    assert (sound.step, sound.sample_rate, sound.length_frames, sound.content_type) == (4, 22050, 1000, "audio/wav")
    assert sound.encoded_audio_string[:4] == b"RIFF" and len(sound.encoded_audio_string) == 44 + 2000

    (text,) = events.Tensors("note")
    assert text.tensor_proto.string_val[0].decode() == "سلام *world*"
    assert events.SummaryMetadata("note").plugin_data.plugin_name == "text"


def test_tensorboard_forgets_what_was_after_the_checkpoint(tmp_path):
    tool("events", tmp_path / "runs")
    (first,) = (tmp_path / "runs").iterdir()
    first.rename(first.with_name("events.out.tfevents.1.host.1.0"))  # an hour ago, say
    tool("events", tmp_path / "runs", 3)
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [0, 1, 2, 3, 4, 5, 6, 7]


class Outline(html.parser.HTMLParser):
    """Fails on an end without a start and the other way round; collects what the page would load."""

    EMPTY = {"meta", "img", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.loads, self.words = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes), f"{tag} has an attribute twice"
        self.seen.append(tag)
        self.loads += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.words += data


def write_run(folder, steps):
    folder.mkdir()
    dice = random.Random(1)
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            loss = 3 * math.exp(-step / 800) + 0.7 + 0.1 * dice.random()
            line = {"step": step, "epoch": step // 100, "loss": loss, "loss_prior": loss * 0.5, "loss_duration": loss * 0.2,
                    "loss_flow": loss * 0.3, "lr": 2e-4 * min(1, step / 400), "grad_norm": 10 ** dice.gauss(0, 0.4),
                    "step_ms": 100 + 5 * dice.random(), "input_wait_ms": 1 + dice.random(), "gpu_busy": 0.97, "captures": 8,
                    "retraces": 0, "samples_per_s": 560 + dice.random() * 9, "audio_s_per_s": 3600 + dice.random() * 90,
                    "padding": 0.067}
            file.write(json.dumps(line) + "\n")
            if step % 250 == 0:
                file.write(json.dumps({"step": step, "validation_loss": loss + 0.1}) + "\n")
        file.write('{"step": 99999, "lo')


def test_the_page_of_a_run_is_whole_and_loads_nothing(tmp_path):
    write_run(tmp_path / "my run", 3000)
    tool("report", tmp_path / "my run", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    assert outline.seen.count("svg") == 10 and outline.seen.count("img") == 1 and outline.seen.count("audio") == 1
    assert all(place.startswith("data:") for place in outline.loads) and "http" not in page
    assert "3000 steps in 5.1 minutes; loss 3." in outline.words and "0 retraces; 1.5 % of the time" in outline.words
    assert "corpora/<voice> & more" in outline.words and "فارسی" in outline.words
    assert len(page) < 600_000, "long series are thinned"
