import json
import shutil

import numpy as np
import pytest
import soundfile
from conftest import at_once


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "ogg"])
def test_one_seed_one_corpus(myxtts, tmp_path, kind):
    seeds = {"a": 5, "b": 5, "c": 6}
    at_once(lambda name: myxtts("demo-data", tmp_path / name, "--clips", 4, "--seed", seeds[name], "--format", kind), seeds)
    a, b, c = (files(tmp_path / name) for name in "abc")
    assert a == b
    assert a != c and all(a[path] != c[path] for path in a if path.suffix == f".{kind}")


def test_a_second_run_into_the_same_folder_leaves_only_the_new_corpus(myxtts, tmp_path):
    myxtts("demo-data", tmp_path / "a", "--clips", 6)
    myxtts("demo-data", tmp_path / "a", "--clips", 2, "--format", "flac")
    assert sorted(p.name for p in (tmp_path / "a" / "wavs").iterdir()) == ["demo-00001.flac", "demo-00002.flac"]


@pytest.mark.parametrize("kind, rate", [("wav", 16000), ("flac", 24000), ("mp3", 22050), ("ogg", 44100)])
def test_clips_are_audible_and_as_asked(myxtts, tmp_path, kind, rate):
    myxtts("demo-data", tmp_path, "--clips", 2, "--format", kind, "--sample-rate", rate)
    samples, found = soundfile.read(tmp_path / "wavs" / f"demo-00001.{kind}")
    assert found == rate and samples.ndim == 1
    assert 0.05 < np.sqrt(np.mean(samples**2)) < 0.12


def test_persian_and_several_speakers(myxtts, tmp_path):
    myxtts("demo-data", tmp_path, "--clips", 6, "--speakers", 3, "--language", "fa")
    rows = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["speaker"] for row in rows} == {"speaker-1", "speaker-2", "speaker-3"}
    assert all(row["language"] == "fa" and any("\u0600" <= letter <= "\u06ff" for letter in row["text"]) for row in rows)
    done = myxtts("prepare", tmp_path, "--text-tokens", "characters", "--json", tmp_path / "found.json")
    assert "6 clips accepted, 0 rejected" in done.stdout and "min by speaker-2 in fa" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert [row["clips"] for row in found["speakers"]] == [2, 2, 2] and list(found["languages"]) == ["fa"]


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_espeak_speaks_several_languages_and_given_texts(myxtts, tmp_path):
    myxtts("demo-data", tmp_path / "two", "--clips", 12, "--speakers", 4, "--languages", "en,fa", "--voice", "espeak-ng")
    rows = [json.loads(line) for line in (tmp_path / "two" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["language"] for row in rows} == {"en", "fa"}
    assert {row["speaker"] for row in rows if row["language"] == "fa"} != {"speaker-1"}
    # Each text is cleaned and pronounced in its own language, whatever data.language is.
    assert "12 clips accepted, 0 rejected" in myxtts("prepare", tmp_path / "two").stdout
    (tmp_path / "texts.txt").write_text("fr|bonjour tout le monde\ngood morning\n\n")
    myxtts("demo-data", tmp_path / "given", "--clips", 8, "--texts", tmp_path / "texts.txt", "--voice", "espeak-ng")
    said = {json.loads(line)["text"] for line in (tmp_path / "given" / "manifest.jsonl").read_text().splitlines()}
    assert said == {"bonjour tout le monde", "good morning"}
    assert "--voice espeak-ng" in myxtts("demo-data", tmp_path / "none", "--texts", tmp_path / "texts.txt", status=2).stderr


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_a_language_that_espeak_does_not_know_is_rejected_row_by_row(myxtts, tmp_path):
    myxtts("demo-data", tmp_path, "--clips", 3, "--speakers", 2)
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"en"', '"xx-none"', 1))
    done = myxtts("prepare", tmp_path)
    assert "2 clips accepted, 1 rejected" in done.stdout and "does not support the language 'xx-none'" in done.stdout


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_texts_of_another_language_are_noticed(myxtts, tmp_path):
    myxtts("demo-data", tmp_path, "--clips", 6, "--language", "fa")
    assert "do not look like texts in 'en'" in myxtts("prepare", tmp_path, status=2).stderr


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
@pytest.mark.parametrize("language", ["en", "fa"])
def test_espeak_speaks_the_same_texts(myxtts, tmp_path, language):
    for folder, voice in (("formant", "formant"), ("espeak", "espeak-ng")):
        myxtts("demo-data", tmp_path / folder, "--clips", 2, "--voice", voice, "--language", language, "--sample-rate", 16000)
    texts = [(tmp_path / folder / "metadata.csv").read_text() for folder in ("formant", "espeak")]
    assert texts[0] == texts[1]
    samples, rate = soundfile.read(tmp_path / "espeak" / "wavs" / "demo-00002.wav")
    assert rate == 16000 and np.sqrt(np.mean(samples**2)) > 0.01


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_a_variant_of_espeak_is_one_voice(myxtts, tmp_path):
    for name, voice in (("plain", "espeak-ng"), ("variant", "espeak-ng+f2")):
        myxtts("demo-data", tmp_path / name, "--clips", 1, "--voice", voice)
    sounds = [(tmp_path / name / "wavs" / "demo-00001.wav").read_bytes() for name in ("plain", "variant")]
    assert sounds[0] != sounds[1]
    assert "is one voice" in myxtts("demo-data", tmp_path / "x", "--voice", "espeak-ng+f2", "--speakers", 2, status=2).stderr
    assert "--voice is 'espeak-ng+'" in myxtts("demo-data", tmp_path / "x", "--voice", "espeak-ng+", status=2).stderr


def test_a_users_corpus_is_never_overwritten(myxtts, tmp_path):
    (tmp_path / "metadata.csv").write_text("mine|text\n")
    assert "another folder" in myxtts("demo-data", tmp_path, status=2).stderr
    assert (tmp_path / "metadata.csv").read_text() == "mine|text\n"
