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
    done = myxtts("demo-data", tmp_path, "--clips", 6, "--speakers", 3, "--language", "fa")
    assert "id|speaker|text" in done.stdout
    rows = [line.split("|") for line in (tmp_path / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    assert {row[1] for row in rows} == {"speaker-1", "speaker-2", "speaker-3"}
    assert all(any("\u0600" <= letter <= "\u06ff" for letter in row[2]) for row in rows)
    config = tmp_path / "config.yaml"
    config.write_text("data:\n  metadata_format: id|speaker|text\n  batch_size: 2\n")
    assert "6 clips accepted, 0 rejected" in myxtts("prepare", tmp_path, "--config", config, "--language", "fa").stdout
    assert "6 clips accepted, 0 rejected" in myxtts("prepare", tmp_path, "--config", config, "--text-tokens", "characters").stdout


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


def test_a_users_corpus_is_never_overwritten(myxtts, tmp_path):
    (tmp_path / "metadata.csv").write_text("mine|text\n")
    assert "another folder" in myxtts("demo-data", tmp_path, status=2).stderr
    assert (tmp_path / "metadata.csv").read_text() == "mine|text\n"
