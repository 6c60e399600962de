"""Voices exported to sherpa-onnx: what onnxruntime and sherpa-onnx make of the files is what the program speaks."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import BINARY, ROOT, at_once

onnx = pytest.importorskip("onnx", reason="onnx is not installed: exported files are not checked")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: exported files are not run")
from safetensors.numpy import load_file, save_file  # noqa: E402

pytestmark = [pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed: exported voices speak phonemes"),
              pytest.mark.skipif(b"libonnx_proto" not in subprocess.run(["readelf", "-d", BINARY], capture_output=True).stdout,
                                 reason="this build has no ONNX")]
DUMP = pathlib.Path(os.environ.get("VOICE_DUMP", ROOT / "build" / "tests" / "voice_dump"))
# How far log-mel and waveform may be off in the mean, as a share of their standard deviation.
PRECISIONS = {"float32": 1e-4, "float16": 1e-3, "int8": 0.01}


@pytest.fixture(scope="module")
def voices(myxtts, tmp_path_factory):
    """Voices of a few steps: of one speaker with a vocoder beside it, and of three speakers in two languages without blanks."""
    folder = tmp_path_factory.mktemp("export")
    myxtts("demo-data", folder / "one-corpus", "--clips", 80)
    myxtts("demo-data", folder / "many-corpus", "--clips", 80, "--speakers", 3, "--languages", "en,fa")
    (folder / "many.yaml").write_text("data: {blank_tokens: false}\n")
    (folder / "one.yaml").write_text("data: {blank_tokens: true}\n")
    (folder / "vocoder.yaml").write_text("training: {adversarial: false}\n")
    train = ("train", "--device", "cpu", "--shape-buckets", 2, "--max-mel-frames", 240)
    at_once(lambda name: myxtts(*train, "--train-data", folder / f"{name}-corpus", "--config", folder / f"{name}.yaml", "--batch-size", 4,
                                "--checkpoint-dir", folder / name, "--max-steps", 3), ("one", "many"))
    myxtts(*train, "--train-data", folder / "one-corpus", "--target", "vocoder", "--config", folder / "vocoder.yaml", "--batch-size", 2,
           "--checkpoint-dir", folder / "vocoder", "--max-steps", 1)
    for name in ("one", "many"):
        shutil.copy(folder / "vocoder" / "step-00000001.safetensors", folder / name / "vocoder.safetensors")
    return folder


def text_in(voices, language):
    """A short text of the corpus: the voices have learnt its phonemes."""
    rows = [json.loads(line) for line in (voices / "many-corpus" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    return min((row["text"] for row in rows if row["language"] == language and len(row["text"]) > 20), key=len)


def best(folder):
    return folder / "best.safetensors" if (folder / "best.safetensors").exists() else max(folder.glob("step-*.safetensors"))


def spoken(folder, text, tmp_path, speaker="", language="", vocoder=None):
    """What the program makes of a text: tokens, noise, mels and waveform."""
    out = tmp_path / "spoken.safetensors"
    subprocess.run([DUMP, best(folder), vocoder or folder / "vocoder.safetensors", text, speaker, language, out], check=True)
    return load_file(out)


def session(path, noise=False):
    """An exported model; with `noise`, what it would draw is an input."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    if noise:
        node = next(node for node in model.graph.node if node.op_type == "RandomNormalLike")
        model.graph.node.remove(node)
        model.graph.input.append(onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, ["frames", "mels"]))
        return onnxruntime.InferenceSession(model.SerializeToString()), node.output[0]
    return onnxruntime.InferenceSession(model.SerializeToString())


def mel_of(path, tokens, noise, scale, **more):
    model, name = session(path, noise=True)
    given = {"x": tokens.astype(np.int64)[None], "x_length": np.array([len(tokens)]), "noise_scale": np.array([scale], np.float32),
             "length_scale": np.array([1], np.float32), name: noise, **{key: np.array([value]) for key, value in more.items()}}
    return model.run(None, given)[0][0].T


def waveform_of(path, mel):
    """What the runtime makes of the vocoder's outputs: the inverse transform, without half a window at both ends."""
    model = session(path)
    about = model.get_modelmeta().custom_metadata_map
    n_fft, hop = int(about["n_fft"]), int(about["hop_length"])
    magnitude, cosine, sine = model.run(None, {"mel": np.ascontiguousarray(mel.T[None])})
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    frames = np.fft.irfft((magnitude * (cosine + 1j * sine))[0].T, n_fft) * window
    wave, cover = np.zeros((2, (len(frames) - 1) * hop + n_fft))
    for i, frame in enumerate(frames):
        wave[i * hop:i * hop + n_fft] += frame
        cover[i * hop:i * hop + n_fft] += window**2
    return (wave / np.maximum(cover, 1e-12))[n_fft // 2:-n_fft // 2]


def assert_same_sound(ours, theirs):
    """The runtime centres its windows, so that it begins a little later than the program, and ends a little earlier."""
    late = (len(ours) - len(theirs)) // 2
    assert 0 <= late <= 128
    assert np.abs(ours[late:late + len(theirs)] - theirs).max() < 1e-3


def test_a_voice_of_one_speaker_is_the_same_in_onnxruntime(myxtts, voices, tmp_path):
    myxtts("export", "--checkpoint", voices / "one", "--out", tmp_path / "out", "--json", tmp_path / "files.json")
    files = {pathlib.Path(file["path"]).name: file["bytes"] for file in json.loads((tmp_path / "files.json").read_text())["files"]}
    assert set(files) == {"model.onnx", "vocoder.onnx", "tokens.txt", "phonemes.py", "README.md"}
    assert all((tmp_path / "out" / name).stat().st_size == size for name, size in files.items())
    ours = spoken(voices / "one", text_in(voices, "en"), tmp_path)
    for scale, key in ((1, "mel"), (0, "plain_mel")):
        theirs = mel_of(tmp_path / "out" / "model.onnx", ours["tokens"], ours["noise"], scale)
        assert theirs.shape == ours[key].shape and np.abs(theirs - ours[key]).max() < 1e-3
    assert np.abs(ours["mel"] - ours["plain_mel"]).max() > 0.1
    assert_same_sound(ours["waveform"], waveform_of(tmp_path / "out" / "vocoder.onnx", ours["plain_mel"]))


def test_speakers_have_numbers_and_a_language_is_chosen(myxtts, voices, tmp_path):
    for language in ("en", "fa"):
        text = text_in(voices, language)
        out = tmp_path / language
        myxtts("export", "--checkpoint", voices / "many", "--out", out, "--language", language)
        about = onnxruntime.InferenceSession(out / "model.onnx").get_modelmeta().custom_metadata_map
        assert about["n_speakers"] == "3" and about["voice"] == language
        mels = []
        for number, speaker in enumerate(about["speakers"].split(",")):
            assert f"| {number} | {speaker} |" in (out / "README.md").read_text()
            ours = spoken(voices / "many", text, tmp_path, speaker, language)
            # The runtime puts blanks between tokens, and the graph takes them out for a voice that has learnt none.
            tokens = np.ones(2 * len(ours["tokens"]) + 1, np.int64)
            tokens[1::2] = ours["tokens"]
            mels.append(mel_of(out / "model.onnx", tokens, ours["noise"], 1, sid=number))
            assert np.abs(mels[-1] - ours["mel"]).max() < 1e-3
        assert mels[0].shape != mels[1].shape or np.abs(mels[0] - mels[1]).max() > 0.01


def test_a_speaker_file_is_fixed_into_the_model(myxtts, voices, tmp_path):
    clip = next((voices / "many-corpus" / "wavs").glob("*.wav"))
    myxtts("speakers", "add", clip, "--checkpoint", voices / "many", "--out", tmp_path / "someone.speaker")
    myxtts("export", "--checkpoint", voices / "many", "--out", tmp_path / "out", "--speaker", tmp_path / "someone.speaker")
    model = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert [given.name for given in model.get_inputs()] == ["x", "x_length", "noise_scale", "length_scale"]
    ours = spoken(voices / "many", text_in(voices, "en"), tmp_path, str(tmp_path / "someone.speaker"))
    assert np.abs(mel_of(tmp_path / "out" / "model.onnx", ours["tokens"], ours["noise"], 1) - ours["mel"]).max() < 1e-3
    assert "sid`" not in (tmp_path / "out" / "README.md").read_text().split("## Text")[0].split("```")[2]


def test_smaller_weights_make_smaller_files_and_nearly_the_same_mel(myxtts, voices, tmp_path):
    ours = spoken(voices / "one", text_in(voices, "en"), tmp_path)
    sizes, exact = [], None
    for precision, furthest in PRECISIONS.items():
        out = tmp_path / precision
        myxtts("export", "--checkpoint", voices / "one", "--out", out, "--precision", precision)
        sizes.append((out / "model.onnx").stat().st_size)
        theirs = mel_of(out / "model.onnx", ours["tokens"], ours["noise"], 1)
        assert theirs.shape == ours["mel"].shape and np.abs(theirs - ours["mel"]).mean() < furthest * ours["mel"].std(), precision
        wave = waveform_of(out / "vocoder.onnx", ours["mel"])
        exact = wave if exact is None else exact
        assert np.abs(wave - exact).mean() < furthest * exact.std(), precision
    assert sizes[1] < 0.55 * sizes[0] and sizes[2] < 0.3 * sizes[0]


def test_a_hifigan_is_exported_as_its_own_kind(myxtts, voices, tmp_path):
    random, tensors = np.random.default_rng(7), {}

    def add(name, *shape, outputs):
        fan_in = np.prod(shape) / outputs
        tensors[f"{name}.weight"] = (random.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
        tensors[f"{name}.bias"] = (0.1 * random.standard_normal(outputs)).astype(np.float32)

    add("conv_pre", 512, 80, 7, outputs=512)
    for i, kernel in enumerate((16, 16, 4, 4)):
        width = 256 >> i
        add(f"ups.{i}", 2 * width, width, kernel, outputs=width)
        for j, size in enumerate((3, 7, 11)):
            for part in range(3):
                add(f"resblocks.{3 * i + j}.convs1.{part}", width, width, size, outputs=width)
                add(f"resblocks.{3 * i + j}.convs2.{part}", width, width, size, outputs=width)
    add("conv_post", 1, 32, 7, outputs=1)
    generator = tmp_path / "generator.safetensors"
    save_file(tensors, generator)
    myxtts("export", "--checkpoint", voices / "one", "--vocoder", generator, "--out", tmp_path / "out")
    ours = spoken(voices / "one", text_in(voices, "en"), tmp_path, vocoder=generator)
    model = session(tmp_path / "out" / "vocoder.onnx")
    assert model.get_modelmeta().custom_metadata_map == {"model_type": "hifigan", "sample_rate": "22050"}
    theirs = model.run(None, {"mel": np.ascontiguousarray(ours["plain_mel"].T[None])})[0].ravel()
    assert theirs.shape == ours["waveform"].shape and np.abs(theirs - ours["waveform"]).max() < 1e-3 and np.abs(theirs).max() > 0.01


def test_more_evaluations_of_the_flow_are_another_graph(myxtts, voices, tmp_path):
    counts = []
    for steps in (2, 8):
        myxtts("export", "--checkpoint", voices / "one", "--out", tmp_path / str(steps), "--steps", steps)
        counts.append(len(onnx.load(tmp_path / str(steps) / "model.onnx").graph.node))
    assert counts[1] > 3 * counts[0]


def in_folder(folder, code, env=None):
    """Runs Python in the exported folder; what it prints last, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


SHERPA = """
import json, phonemes, sherpa_onnx as so
matcha = so.OfflineTtsMatchaModelConfig(acoustic_model="model.onnx", vocoder="vocoder.onnx", tokens="tokens.txt", lexicon="{lexicon}", noise_scale=0)
voice = so.OfflineTts(so.OfflineTtsConfig(model=so.OfflineTtsModelConfig(matcha=matcha)))
request = phonemes.request("{text}", sid={sid})
if "{lexicon}":
    request.phoneme_codepoints = []
audio = voice.generate("{text}", request)
print(json.dumps([voice.num_speakers, audio.sample_rate, list(audio.samples)]))
"""


def test_sherpa_onnx_speaks_what_the_program_speaks(myxtts, voices, tmp_path):
    pytest.importorskip("sherpa_onnx", reason="sherpa-onnx is not installed: its speech is not compared")
    for name, language, sid in (("one", "en", 0), ("many", "fa", 1)):
        out = tmp_path / name
        myxtts("export", "--checkpoint", voices / name, "--out", out, "--language", language)
        text = text_in(voices, language)
        speakers = onnxruntime.InferenceSession(out / "model.onnx").get_modelmeta().custom_metadata_map["speakers"].split(",")
        found = json.loads(in_folder(out, SHERPA.format(lexicon="", text=text, sid=sid)))
        ours = spoken(voices / name, text, tmp_path, speakers[sid] if sid else "", language if sid else "")
        assert found[0] == len(speakers) and found[1] == 22050
        assert_same_sound(ours["waveform"], np.array(found[2]))


def test_sherpa_onnx_speaks_by_a_lexicon(myxtts, voices, tmp_path):
    pytest.importorskip("sherpa_onnx", reason="sherpa-onnx is not installed: its speech is not compared")
    (tmp_path / "words.txt").write_text(text_in(voices, "en") + " River, water. Good cloud.\nThe river and the cloud.\n")
    out = tmp_path / "out"
    myxtts("export", "--checkpoint", voices / "one", "--out", out, "--words", tmp_path / "words.txt")
    words = dict(line.split(" ", 1) for line in (out / "lexicon.txt").read_text().splitlines())
    assert {"water", "river", "and", "cloud", "the"} < set(words)
    text = "river, good water."  # pieces of five words and more, whatever their marks
    found = json.loads(in_folder(out, SHERPA.format(lexicon="lexicon.txt", text=text, sid=0)))
    samples = spoken(voices / "one", text, tmp_path)["waveform"]
    assert abs(len(samples) - len(found[2])) < 0.2 * len(samples)
    assert "Give it `lexicon.txt`" in (out / "README.md").read_text()


def test_the_example_of_the_readme_runs(myxtts, voices, tmp_path):
    pytest.importorskip("sherpa_onnx", reason="sherpa-onnx is not installed: the example is not run")
    for name, language in (("one", "en"), ("many", "fa")):
        myxtts("export", "--checkpoint", voices / name, "--out", tmp_path / name, "--language", language)
        page = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        example = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
        assert example.count("\n") == 5 and 'dir="rtl"' in page
        in_folder(tmp_path / name, example)
        assert (tmp_path / name / "speech.wav").stat().st_size > 10_000


def test_the_phonemes_of_the_script_are_those_of_the_program(myxtts, voices, tmp_path):
    texts = ["Good morning, how are you? Fine; thanks!", "The river: cold... and (very) deep", "What"]
    myxtts("export", "--checkpoint", voices / "one", "--out", tmp_path / "out")
    table = {}
    for line in (tmp_path / "out" / "tokens.txt").read_text(encoding="utf-8").splitlines():
        symbol, number = line.rsplit(" ", 1)
        table[symbol or " "] = int(number)
    for text in ("Good water, river and cloud.", "River and cloud", "Cloud; water!"):
        said = in_folder(tmp_path / "out", f"import phonemes; print(phonemes.phonemes({text!r}))").rstrip("\n")
        ours = spoken(voices / "one", text, tmp_path)["tokens"]
        assert [table[phoneme] for phoneme in said] == list(ours[1::2]), said
    assert all(in_folder(tmp_path / "out", f"import phonemes; print(phonemes.phonemes({text!r}))").strip() for text in texts)


def test_espeak_ngs_data_is_copied_only_when_asked_for(myxtts, voices, tmp_path):
    data = next(pathlib.Path("/usr").glob("lib/*/espeak-ng-data"), None) or pathlib.Path("/usr/share/espeak-ng-data")
    if not (data / "phontab").exists():
        pytest.skip("espeak-ng's data is not where Debian has it")
    myxtts("export", "--checkpoint", voices / "one", "--out", tmp_path / "with", "--espeak-data", data)
    myxtts("export", "--checkpoint", voices / "one", "--out", tmp_path / "without")
    assert (tmp_path / "with" / "espeak-ng-data" / "phontab").read_bytes() == (data / "phontab").read_bytes()
    assert "GPL" in (tmp_path / "with" / "README.md").read_text() and not (tmp_path / "without" / "espeak-ng-data").exists()


def test_what_cannot_be_exported_is_said(myxtts, voices, voice, tmp_path):
    export = ("export", "--out", tmp_path / "out", "--checkpoint")
    assert "characters" in myxtts(*export, voice, status=2).stderr
    assert "float32, float16 or int8" in myxtts(*export, voices / "one", "--precision", "int4", status=2).stderr
    assert "--steps is 0" in myxtts(*export, voices / "one", "--steps", 0, status=2).stderr
    assert "speaks 'en'" in myxtts(*export, voices / "one", "--language", "fa", status=2).stderr
    assert "no language 'de'" in myxtts(*export, voices / "many", "--language", "de", status=2).stderr
    assert "cannot speak as another" in myxtts(*export, voices / "one", "--speaker", "speaker-1", status=2).stderr
    assert "did you mean speaker-" in myxtts(*export, voices / "many", "--speaker", "speaker-l", status=2).stderr
    assert "phontab" in myxtts(*export, voices / "one", "--espeak-data", tmp_path, status=2).stderr
    assert "nowhere.txt" in myxtts(*export, voices / "one", "--words", tmp_path / "nowhere.txt", status=2).stderr
    assert "for --format sherpa-onnx" in myxtts(*export, voices / "one", "--format", "safetensors", "--precision", "int8", status=2).stderr
    alone = tmp_path / "alone.safetensors"
    shutil.copy(best(voices / "one"), alone)
    assert "has no vocoder beside it" in myxtts(*export, alone, status=2).stderr
    assert "is a vocoder, no voice" in myxtts(*export, voices / "vocoder", status=2).stderr
    assert not (tmp_path / "out").exists()
