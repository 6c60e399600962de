"""Voices of several speakers and languages, references, and fine-tuning, with the real binary."""
import json
import os
import shutil

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_train import assert_same_weights, tensors

TRAIN = ("--batch-size", 4, "--shape-buckets", 2, "--max-mel-frames", 240)


@pytest.fixture(scope="module")
def voices(myxtts, tmp_path_factory):
    """A corpus of three speakers in two languages, and a voice of four steps on it."""
    folder = tmp_path_factory.mktemp("speakers")
    myxtts("demo-data", folder / "corpus", "--clips", 40, "--speakers", 3, "--languages", "en,fa")
    (folder / "config.yaml").write_text("data: {text_tokens: characters}\ntraining: {checkpoint_every: 2, log_every: 1}\n")
    done = myxtts("train", "--train-data", folder / "corpus", "--config", folder / "config.yaml", "--checkpoint-dir", folder / "run", *TRAIN,
                  "--max-steps", 4)
    assert "3 speakers in 2 languages, condition dropout 0.15" in done.stdout
    return folder


def test_a_voice_lists_its_speakers_and_speaks_as_each(myxtts, voices, tmp_path):
    done = myxtts("speakers", voices / "run", "--json", tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    assert sorted(found["speakers"]) == ["speaker-1", "speaker-2", "speaker-3"] and sorted(found["languages"]) == ["en", "fa"]
    assert "speaker-2" in done.stdout
    sounds = set()
    for name, text, *more in (("one", "river", "--speaker", "speaker-1"), ("two", "river", "--speaker", "speaker-2"),
                              ("guided", "river", "--speaker", "speaker-1", "--guidance", 2), ("fa", "سلام", "--language", "fa")):
        myxtts("synth", "--checkpoint", voices / "run", "--text", text, "--out", tmp_path / f"{name}.wav", *more)
        sounds.add((tmp_path / f"{name}.wav").read_bytes())
    assert len(sounds) == 4


def test_a_voice_from_a_clip_and_as_a_file(myxtts, voices, tmp_path):
    clips = [voices / "corpus" / "wavs" / f"demo-0000{i}.wav" for i in (1, 4)]
    say = ("synth", "--checkpoint", voices / "run", "--text", "river", "--out")
    myxtts(*say, tmp_path / "clip.wav", "--reference", *clips)
    myxtts("speakers", "add", *clips, "--checkpoint", voices / "run", "--out", tmp_path / "someone.speaker")
    myxtts(*say, tmp_path / "file.wav", "--speaker", tmp_path / "someone.speaker")
    assert (tmp_path / "clip.wav").read_bytes() == (tmp_path / "file.wav").read_bytes()
    assert (tmp_path / "someone.speaker").stat().st_size < 4096
    myxtts("speakers", "add", clips[0], "--speaker", "speaker-3", "--checkpoint", voices / "run", "--out", tmp_path / "mixed.speaker")
    myxtts(*say, tmp_path / "mixed.wav", "--speaker", tmp_path / "mixed.speaker")
    assert (tmp_path / "mixed.wav").read_bytes() != (tmp_path / "file.wav").read_bytes()


def test_what_is_asked_wrongly_is_said(myxtts, voices, tmp_path):
    say = ("synth", "--checkpoint", voices / "run", "--text", "river", "--out", tmp_path / "x.wav")
    assert "did you mean speaker-" in myxtts(*say, "--speaker", "speaker-l", status=2).stderr
    assert "no language 'de'" in myxtts(*say, "--language", "de", status=2).stderr
    assert "both say who speaks" in myxtts(*say, "--speaker", "speaker-1", "--reference", "a.wav", status=2).stderr
    (tmp_path / "bad.speaker").write_bytes(b"nonsense")
    assert "bad.speaker" in myxtts(*say, "--speaker", tmp_path / "bad.speaker", status=2).stderr
    assert "ends in .speaker" in myxtts("speakers", "add", "a.wav", "--checkpoint", voices / "run", "--out", tmp_path / "x", status=2).stderr
    assert not (tmp_path / "x.wav").exists()


def test_runs_with_references_repeat_and_resume_to_the_bit(myxtts, voices, tmp_path):
    train = ("train", "--train-data", voices / "corpus", "--config", voices / "config.yaml", *TRAIN)
    myxtts(*train, "--checkpoint-dir", tmp_path / "again", "--max-steps", 4, "--num-workers", 1)
    assert_same_weights(tmp_path / "again" / "step-00000004.safetensors", voices / "run" / "step-00000004.safetensors")
    shutil.copytree(voices / "run", tmp_path / "stopped")
    (tmp_path / "stopped" / "step-00000004.safetensors").unlink()
    myxtts(*train, "--checkpoint-dir", tmp_path / "stopped", "--max-steps", 4)
    assert_same_weights(tmp_path / "stopped" / "step-00000004.safetensors", voices / "run" / "step-00000004.safetensors")


def test_fine_tuning_takes_weights_over_by_name(myxtts, voices, tmp_path):
    myxtts("demo-data", tmp_path / "corpus", "--clips", 24, "--speakers", 2, "--seed", 9)
    manifest = tmp_path / "corpus" / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace("speaker-2", "someone").replace("river", "ríver"))
    train = ("train", "--train-data", tmp_path / "corpus", "--checkpoint-dir", tmp_path / "run", *TRAIN)
    done = myxtts(*train, "--from", voices / "run", "--max-steps", 1)
    assert "begins with the weights of" in done.stdout and "speaker someone" in done.stdout
    assert "data.text_tokens characters: as in the voice to begin with" in done.stdout
    assert "speaker-1" not in [line for line in done.stdout.splitlines() if "begun anew" in line][0]
    before, after = tensors(voices / "run" / "best.safetensors"), tensors(tmp_path / "run" / "step-00000001.safetensors")
    assert after["average.speakers.table"].shape[0] == 4
    for name in ("decoder.in.weight", "reference.in.weight"):
        # One step at the beginning of the warm-up changes little.
        assert abs(after[f"average.{name}"] - before[f"average.{name}"]).max() < 1e-2, name
    assert "speaker-3" in myxtts("speakers", tmp_path / "run").stdout
    # The same command resumes it.
    done = myxtts(*train, "--from", voices / "run", "--max-steps", 2)
    assert "resumed from" in done.stdout and "begins with" not in done.stdout
    with safe_open(tmp_path / "run" / "step-00000002.safetensors", "np") as file:
        assert json.loads(file.metadata()["languages"]) == json.loads(safe_open(voices / "run" / "best.safetensors", "np").metadata()["languages"])
    # Going on with it on another corpus says what is meant for that.
    assert "give --from" in myxtts("train", "--train-data", voices / "corpus", "--checkpoint-dir", tmp_path / "run", *TRAIN, "--max-steps", 3,
                                   "--text-tokens", "characters").stderr
    assert "there is no" in myxtts(*train, "--from", tmp_path / "none", "--reset-training", status=2).stderr


def test_fine_tuning_stops_early_and_resumes_to_the_same_end(myxtts, voices, tmp_path):
    """With a learning rate that changes nothing, no validation is better than the first."""
    config = tmp_path / "still.yaml"
    config.write_text("training: {validate_every: 1, checkpoint_every: 4, keep_checkpoints: 9, log_every: 1, sample_every: 1000, learning_rate: 1e-12}\n")
    more = ("--train-data", voices / "corpus", "--from", voices / "run", "--config", config, *TRAIN)
    train = ("train", *more, "--checkpoint-dir", tmp_path / "run", "--max-steps", 15)
    done = myxtts(*train, "--json", tmp_path / "whole.json")
    assert "stops early after 5 validations in a row without improvement" in done.stdout
    assert "stopped early at step 6: 5 validations in a row did not improve on mel distance" in done.stdout
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert whole["stopped_early"] and not whole["interrupted"] and whole["steps"] == 6 and whole["total_steps"] == 15
    assert "nothing to do: it stopped early" in myxtts(*train).stdout
    # A third of the validations of a longer run are more, so it trains on.
    shutil.copytree(tmp_path / "run", tmp_path / "cut")
    assert "stopped early at step 7: 6 validations" in myxtts(*train[:-1], 18).stdout
    # Cut off after step 4 it stops at the same step, with the same bits.
    (tmp_path / "cut" / "step-00000006.safetensors").unlink()
    myxtts("train", *more, "--checkpoint-dir", tmp_path / "cut", "--max-steps", 15, "--json", tmp_path / "cut.json")
    assert json.loads((tmp_path / "cut.json").read_text())["steps"] == 6
    assert_same_weights(tmp_path / "cut" / "step-00000006.safetensors", tmp_path / "run" / "step-00000006.safetensors")
    config.write_text(config.read_text().replace("validate_every", "early_stopping: none, validate_every"))
    assert "done: 9 of 9 steps" in myxtts(*train[:-1], 9).stdout


def test_balanced_speakers_come_equally_often(myxtts, tmp_path):
    myxtts("demo-data", tmp_path / "corpus", "--clips", 40, "--speakers", 2)
    manifest = tmp_path / "corpus" / "manifest.jsonl"
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    kept = [row for i, row in enumerate(rows) if row["speaker"] == "speaker-1" or i < 8]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in kept))
    (tmp_path / "config.yaml").write_text("data: {text_tokens: characters, balance_speakers: 1, val_share: 0}\n")
    myxtts("batches", "--train-data", tmp_path / "corpus", "--config", tmp_path / "config.yaml", "--batch-size", 2, "--num-batches", 16,
           "--json", tmp_path / "batches.json")
    speaker = {row["audio_filepath"][:-4]: row["speaker"] for row in kept}
    seen = [speaker[clip] for batch in json.loads((tmp_path / "batches.json").read_text())["batches"] for clip in batch["ids"]]
    assert 0.3 < seen.count("speaker-2") / len(seen) < 0.7


def test_a_voice_that_ships_is_found_by_its_name_and_lends_its_vocoder(myxtts, voices, tmp_path):
    base = tmp_path / "voices" / "base"
    myxtts("export", "--format", "safetensors", "--checkpoint", voices / "run", "--out", base)
    config = tmp_path / "vocoder.yaml"
    config.write_text("training: {adversarial: false}\n")
    myxtts("train", "--target", "vocoder", "--train-data", voices / "corpus", "--config", config, "--batch-size", 2, "--max-steps", 1,
           "--checkpoint-dir", tmp_path / "vocoder")
    shutil.copy(tmp_path / "vocoder" / "step-00000001.safetensors", base / "vocoder.safetensors")
    near = {"env": os.environ | {"MYXTTS_VOICES": str(tmp_path / "voices")}, "cwd": tmp_path}
    myxtts("synth", "--checkpoint", "base", "--text", "river", "--out", tmp_path / "base.wav", **near)
    train = ("train", "--train-data", voices / "corpus", "--from", "base", *TRAIN, "--max-steps", 1, "--checkpoint-dir", tmp_path / "mine")
    assert "speaks through its vocoder" in myxtts(*train, **near).stdout
    assert (tmp_path / "mine" / "vocoder.safetensors").read_bytes() == (base / "vocoder.safetensors").read_bytes()
    assert "no voice of that name" in myxtts("synth", "--checkpoint", "nobody", "--text", "a", "--out", tmp_path / "x.wav", status=2, **near).stderr
    say = ("synth", "--checkpoint", "base", "--text", "a", "--out", tmp_path / "x.wav")
    file, whole = base / "best.safetensors", (base / "best.safetensors").read_bytes()
    with safe_open(file, "pt") as opened:
        newer = {key: value for key, value in opened.metadata().items() if "checksum" not in key} | {"version": "9"}
    file.write_bytes(whole.replace(b'"version":"1"', b'"version":"9"', 1))
    assert "its header does not match its checksum" in myxtts(*say, status=2, **near).stderr
    file.write_bytes(whole)
    save_file(load_file(file), file, newer)
    assert "has version 9" in myxtts(*say, status=2, **near).stderr
