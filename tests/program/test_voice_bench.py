"""The tools that judge voices, on a demo corpus. The judges themselves are not installed here."""
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from conftest import BINARY, HANG_S


@pytest.fixture(scope="module")
def bench(root):
    def run(script, *arguments, status=0):
        command = [sys.executable, root / "bench" / script, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, env={"MYXTTS": str(BINARY), "PATH": "/usr/bin:/bin"})
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def split(bench, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    rows = []
    for line in (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines():
        clip, text = line.split("|")[:2]
        path = corpus / "wavs" / f"{clip}.wav"
        speaker = "short" if clip.endswith("1") else "long"
        rows.append({"audio_filepath": str(path), "text": text, "speaker": speaker, "language": "en", "duration": soundfile.info(path).duration})
    rows.append({**rows[0], "audio_filepath": rows[-1]["audio_filepath"]})  # the text of another clip
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    bench("hold_out.py", folder / "manifest.jsonl", folder, "--clips", 3, "--min-words", 1)
    return folder


def rows_of(split, part):
    return [json.loads(line) for line in (split / part / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_split_has_one_speaker_and_no_text_twice(split):
    train, held_out = rows_of(split, "train"), rows_of(split, "held_out")
    assert {row["speaker"] for row in train + held_out} == {"long"}
    assert len(held_out) == 3
    assert not {row["text"] for row in train} & {row["text"] for row in held_out}


def test_what_judges_are_missing_is_said_and_the_rest_is_judged(bench, split, myxtts, tmp_path):
    mels = {}
    for row in rows_of(split, "held_out"):
        myxtts("mel", split / "held_out" / row["audio_filepath"], tmp_path / "own.npy")
        mels[row["audio_filepath"].split("/")[-1][:-4]] = np.load(tmp_path / "own.npy")[::-1]
    np.savez(tmp_path / "backwards.npz", **mels)
    done = bench("voice_eval.py", split / "held_out" / "manifest.jsonl", "--mels", f"backwards={tmp_path}/backwards.npz",
                 "--out", tmp_path / "result.json", "--keep", tmp_path / "kept")
    for metric in ("CER and WER", "MOS", "similarity"):
        assert f"skipped: {metric}: No module named" in done.stdout
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    distortion = {name: kind["means"]["mcd"] for name, kind in result["kinds"].items()}
    assert distortion["recordings"] == pytest.approx(0, abs=1e-3)
    assert 0 < distortion["griffin_lim"] < distortion["backwards"]
    assert len(result["held_out"]) == 3
    assert len(list((tmp_path / "kept").glob("*.wav"))) == 9


def test_words_are_compared_without_case_and_punctuation_and_with_numbers_as_words():
    import voice_eval

    assert voice_eval.words_of("It's 1,204 – “Twenty-One”!") == ["it's", "one", "thousand", "two", "hundred", "four", "twenty", "one"]
    assert voice_eval.edit_distance("kitten", "sitting") == 3


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed: phonemes are not tested")
def test_a_variant_trains_and_speaks_the_held_out_texts(bench, split, tmp_path):
    bench("voice_data.py", split, tmp_path / "data.npz")
    done = bench("voice_ablations.py", tmp_path / "data.npz", "--variants", "tiny", "--updates", 2, "--log-every", 1, "--steps", 1,
                 "--device", "cpu", "--out", tmp_path)
    assert "tiny: " in done.stdout
    mels = np.load(tmp_path / "tiny.npz")
    assert len(mels.files) == 3 and all(mels[clip].shape[1] == 80 and np.isfinite(mels[clip]).all() for clip in mels.files)
    log = json.loads((tmp_path / "tiny.json").read_text())["log"]
    assert [entry["update"] for entry in log] == [1, 2]
