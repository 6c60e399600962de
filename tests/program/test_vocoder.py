"""Training a vocoder and speaking with it, with the real binary."""
import json
import pathlib
import shutil

import pytest
import soundfile
from test_train import assert_same_weights

STEPS = 6
LAST = f"step-{STEPS:08}.safetensors"


def flags(folder, run, *more):
    return ("train", "--target", "vocoder", "--train-data", folder / "corpus", "--checkpoint-dir", run, "--config", folder / "config.yaml",
            "--batch-size", 2, "--device", "cpu", *more)


@pytest.fixture(scope="module")
def trained(myxtts, tmp_path_factory):
    """A corpus, a vocoder and a voice of a few steps."""
    folder = tmp_path_factory.mktemp("vocoder")
    myxtts("demo-data", folder / "corpus", "--clips", 14)
    (folder / "config.yaml").write_text("data: {text_tokens: characters}\n"
                                        "training: {checkpoint_every: 3, validate_every: 3, log_every: 1}\n")
    done = myxtts(*flags(folder, folder / "run", "--max-steps", STEPS))
    assert "tiny vocoder of 1.2 million parameters" in done.stdout
    myxtts("train", "--train-data", folder / "corpus", "--config", folder / "config.yaml", "--checkpoint-dir", folder / "voice",
           "--batch-size", 4, "--max-steps", 3, "--device", "cpu")
    return folder


def test_it_learns_and_its_losses_have_names(trained):
    rows = [json.loads(line) for line in (trained / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [row for row in rows if "loss" in row]
    assert {"loss", "loss_mel", "loss_adversarial", "loss_features", "loss_discriminator"} <= losses[-1].keys()
    assert losses[-1]["loss_mel"] < losses[0]["loss_mel"] and losses[-1]["retraces"] == 0
    measured = [row["validation_mel_distance"] for row in rows if "validation_mel_distance" in row]
    assert len(measured) == 2 and measured[1] < measured[0]
    page = (trained / "run" / "report.html").read_text()
    assert page.count("data:audio/wav") == 2 and "its mel through the vocoder" in page


def test_it_resumes_to_the_same_bits(myxtts, trained, tmp_path):
    shutil.copytree(trained / "run", tmp_path / "run")
    (tmp_path / "run" / LAST).unlink()
    done = myxtts(*flags(trained, tmp_path / "run", "--max-steps", STEPS, "--num-workers", 1))
    assert "resumed from" in done.stdout
    assert_same_weights(tmp_path / "run" / LAST, trained / "run" / LAST)


def test_a_voice_speaks_through_it(myxtts, trained, tmp_path):
    say = ("synth", "--text", "river", "--checkpoint")
    myxtts(*say, trained / "voice", "--out", tmp_path / "griffin_lim.wav")
    myxtts(*say, trained / "voice", "--out", tmp_path / "named.wav", "--vocoder", trained / "run")
    shutil.copytree(trained / "voice", tmp_path / "voice")
    shutil.copy(trained / "run" / "best.safetensors", tmp_path / "voice" / "vocoder.safetensors")
    myxtts(*say, tmp_path / "voice", "--out", tmp_path / "beside.wav")
    sounds = [(tmp_path / f"{name}.wav").read_bytes() for name in ("griffin_lim", "named", "beside")]
    assert sounds[1] == sounds[2] != sounds[0] and len(sounds[0]) == len(sounds[1])


def test_it_is_tuned_on_the_mels_of_a_voice(myxtts, trained, tmp_path):
    done = myxtts(*flags(trained, tmp_path / "taught", "--teacher", trained / "voice", "--from", trained / "run", "--max-steps", 2))
    assert "spoke 14 clips" in done.stdout and "begins with the weights of" in done.stdout
    assert "not in it" not in done.stdout and "learning rate 0.0001" in done.stdout
    alone = myxtts(*flags(trained, tmp_path / "alone", "--from", trained / "run", "--max-steps", 2))
    assert "spoke" not in alone.stdout
    losses = [json.loads((tmp_path / run / "metrics.jsonl").read_text().splitlines()[0]) for run in ("taught", "alone")]
    assert losses[0]["loss_mel"] > losses[1]["loss_mel"] > 0  # a voice of three steps is no recording
    say = ("synth", "--text", "river", "--checkpoint", trained / "voice", "--vocoder")
    myxtts(*say, tmp_path / "taught", "--out", tmp_path / "a.wav")
    assert (tmp_path / "a.wav").stat().st_size > 1000
    as_voice = ("train", "--train-data", trained / "corpus", "--teacher", trained / "voice", "--checkpoint-dir", tmp_path / "voice")
    assert "--teacher is for vocoders" in myxtts(*as_voice, status=2).stderr


def test_clips_need_no_texts(myxtts, trained, tmp_path):
    wavs = sorted((trained / "corpus" / "wavs").glob("*.wav"))[:6]
    for path in wavs:
        shutil.copy(path, tmp_path)
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps({"audio_filepath": path.name}) + "\n" for path in wavs))
    done = myxtts("train", "--target", "vocoder", "--train-data", tmp_path, "--checkpoint-dir", tmp_path / "run", "--batch-size", 2,
                  "--max-steps", 1, "--device", "cpu")
    assert "not used" not in done.stderr and (tmp_path / "run" / "step-00000001.safetensors").exists()
    as_voice = myxtts("train", "--train-data", tmp_path, "--checkpoint-dir", tmp_path / "voice", "--batch-size", 2, "--max-steps", 1, status=2)
    assert "no clip that can be used" in as_voice.stderr


def test_what_does_not_fit_is_refused(myxtts, trained, tmp_path):
    say = ("synth", "--text", "river", "--out", tmp_path / "out.wav")
    assert "is a vocoder, no voice" in myxtts(*say, "--checkpoint", trained / "run", status=2).stderr
    assert "is a voice, no vocoder" in myxtts(*say, "--checkpoint", trained / "voice", "--vocoder", trained / "voice", status=2).stderr
    myxtts(*flags(trained, tmp_path / "other", "--max-steps", 1, "--mel-preset", "tacotron2"))
    assert "was trained on mels with" in myxtts(*say, "--checkpoint", trained / "voice", "--vocoder", tmp_path / "other", status=2).stderr
    assert "a vocoder is tiny or base" in myxtts(*flags(trained, tmp_path / "small", "--model-size", "small", "--max-steps", 1), status=2).stderr
    assert "is a voice, no vocoder" in myxtts(*flags(trained, tmp_path / "from", "--from", trained / "voice", "--max-steps", 1), status=2).stderr
    assert "is a vocoder, no voice" in myxtts(*flags(trained, tmp_path / "taught", "--teacher", trained / "run", "--max-steps", 1), status=2).stderr
    assert "is 'base'" in myxtts("train", "--train-data", trained / "corpus", "--checkpoint-dir", tmp_path / "base", "--model-size", "base",
                                    "--batch-size", 2, "--max-steps", 1, status=2).stderr
    as_voice = ("train", "--train-data", trained / "corpus", "--config", trained / "config.yaml", "--checkpoint-dir", trained / "run")
    assert "has training.target vocoder" in myxtts(*as_voice, "--batch-size", 2, "--max-steps", 1, status=2).stderr


def test_its_speed_is_measured(myxtts, tmp_path):
    myxtts("bench", "vocoder", "--seconds", 1, "--repeats", 2, "--json", tmp_path / "speak.json")
    myxtts("bench", "step", "--target", "vocoder", "--model-size", "tiny", "--batch-size", 1, "--device", "cpu", "--repeats", 1, "--steps", 1,
           "--json", tmp_path / "step.json")
    speak, step = (json.loads((tmp_path / name).read_text()) for name in ("speak.json", "step.json"))
    assert "tiny" in speak["what"] and speak["unit"] == "x real time" and speak["figure"] > 0 and speak["limit"] > 0
    assert "1 x 16384 samples" in step["what"] and step["unit"] == "ms" and step["figure"] > 0
    for flag in ("--frames", "--speakers", "--tera-flops"):
        refused = myxtts("bench", "step", "--target", "vocoder", flag, 100, status=2)
        assert f"{flag} is of a voice" in refused.stderr


def test_text_to_samples_is_measured_with_the_share_of_each_part(myxtts, trained, tmp_path):
    done = myxtts("bench", "synth", "--checkpoint", trained / "voice", "--text", "ba da", "--repeats", 2, "--json", tmp_path / "synth.json")
    measured = json.loads((tmp_path / "synth.json").read_text())
    parts = [measured[part] for part in ("tokens_ms", "mel_ms", "waveform_ms")]
    assert measured["repeats"] == 2 and measured["unit"] == "x real time" and measured["text"] == "ba da"
    assert min(parts) > 0 and measured["figure"] > 0 and "waveform" in done.stdout
    assert "--repeats is 0" in myxtts("bench", "synth", "--checkpoint", trained / "voice", "--repeats", 0, status=2).stderr


def test_it_starts_by_distances_alone_and_goes_on_against_discriminators(myxtts, trained, tmp_path):
    config = tmp_path / "start.yaml"
    config.write_text("training: {adversarial: false, log_every: 1, learning_rate: 0.001}\n")
    start = ("train", "--target", "vocoder", "--train-data", trained / "corpus", "--batch-size", 2, "--device", "cpu", "--max-steps", 4,
             "--config", config, "--checkpoint-dir", tmp_path / "start")
    myxtts(*start)
    losses = [json.loads(line) for line in (tmp_path / "start" / "metrics.jsonl").read_text().splitlines()]
    losses = [row for row in losses if "loss" in row]
    assert {"loss_mel", "loss_spectrum"} <= losses[0].keys() and "loss_discriminator" not in losses[0]
    assert losses[-1]["loss"] < losses[0]["loss"]
    done = myxtts(*flags(trained, tmp_path / "run", "--from", tmp_path / "start", "--max-steps", 1))
    assert "not in it, so begun anew: the discriminator" in done.stdout
    row = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert row["loss_discriminator"] > 0
    as_voice = ("train", "--train-data", trained / "corpus", "--config", config, "--checkpoint-dir", tmp_path / "voice")
    assert "adversarial is for vocoders" in myxtts(*as_voice, status=2).stderr
    config.write_text("training: {adversarial: true}\n")
    assert "adversarial" in myxtts(*start[:-4], "--config", config, *start[-2:], status=2).stderr


def test_it_and_its_voice_are_shared_in_few_bytes(myxtts, trained, tmp_path):
    done = myxtts("export", "--format", "safetensors", "--checkpoint", trained / "voice", "--vocoder", trained / "run", "--out",
                  tmp_path / "shared", "--json", tmp_path / "files.json")
    files = json.loads((tmp_path / "files.json").read_text())["files"]
    assert [pathlib.Path(file["path"]).name for file in files] == ["best.safetensors", "vocoder.safetensors"] and "MB" in done.stdout
    for file, run in zip(files, ("voice", "run")):
        whole = max(path.stat().st_size for path in (trained / run).glob("step-*.safetensors"))
        assert pathlib.Path(file["path"]).stat().st_size == file["bytes"] < whole / 6
    say = ("synth", "--text", "river", "--checkpoint")
    myxtts(*say, tmp_path / "shared", "--out", tmp_path / "shared.wav")
    myxtts(*say, trained / "voice", "--vocoder", trained / "run", "--out", tmp_path / "own.wav")
    shared, own = (soundfile.read(tmp_path / f"{name}.wav")[0] for name in ("shared", "own"))
    assert abs(len(shared) - len(own)) <= 512  # bfloat16 may round a duration elsewhere
    shared_file = tmp_path / "shared" / "best.safetensors"
    broken = bytearray(shared_file.read_bytes())
    broken[-5] ^= 0x40
    shared_file.write_bytes(broken)
    assert "do not match their checksum" in myxtts(*say, tmp_path / "shared", "--out", tmp_path / "x.wav", status=2).stderr
    wrong = ("export", "--format", "safetensors", "--checkpoint", trained / "voice", "--vocoder", trained / "voice", "--out", tmp_path / "wrong")
    assert "is a voice, no vocoder" in myxtts(*wrong, status=2).stderr
    assert "give --out DIR" in myxtts("export", "--checkpoint", trained / "voice", status=2).stderr
    assert "--format is 'tape'" in myxtts("export", "--checkpoint", trained / "voice", "--out", tmp_path, "--format", "tape", status=2).stderr


def test_it_makes_the_mel_of_a_clip_audible(myxtts, trained, tmp_path):
    clip = next((trained / "corpus" / "wavs").glob("*.wav"))
    mel = ("mel", clip, tmp_path / "mel.npy")
    myxtts(*mel, "--resynth", tmp_path / "griffin_lim.wav")
    done = myxtts(*mel, "--resynth", tmp_path / "vocoder.wav", "--vocoder", trained / "run")
    assert "made from that mel by" in done.stdout and str(trained / "run") in done.stdout
    by = {name: soundfile.read(tmp_path / f"{name}.wav")[0] for name in ("griffin_lim", "vocoder")}
    assert abs(len(by["griffin_lim"]) - len(by["vocoder"])) <= 256 and (by["griffin_lim"] != 0).any() and (by["vocoder"] != 0).any()
    assert "--vocoder is for --resynth" in myxtts(*mel, "--vocoder", trained / "run", status=2).stderr
