import json
import pathlib
import shutil
import subprocess

import numpy as np
import xxhash
from conftest import BINARY


def report(myxtts, tmp_path, *arguments):
    out = tmp_path / "report.json"
    myxtts(*arguments, "--json", out)
    return json.loads(out.read_text())


def test_prepare_reports_the_corpus(myxtts, corpus, tmp_path):
    found = report(myxtts, tmp_path, "prepare", corpus, "--deep", "--batch-size", 8)
    assert found["clips"] == found["accepted"] == 40 and found["rejected"] == []
    assert found["sample_rates"] == {"22050": 40} and found["formats"] == {"wav pcm_16": 40}
    assert sum(found["mel_frames"].values()) == sum(found["text_lengths"].values()) == 40
    assert sum(shape["clips"] for shape in found["shapes"]) == 40
    assert 0 < found["padding"] < 0.25 and found["hours"] > 0.01


def test_a_bad_clip_is_listed_and_strict_makes_it_an_error(myxtts, corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus, folder)
    (folder / "wavs" / "demo-00007.wav").write_bytes(b"not audio at all")
    found = report(myxtts, tmp_path, "prepare", folder)
    assert found["accepted"] == 39
    assert [clip["id"] for clip in found["rejected"]] == ["demo-00007"]
    assert "unreadable" in found["rejected"][0]["reason"] and found["rejected"][0]["path"].endswith("demo-00007.wav")
    assert subprocess.run([BINARY, "prepare", folder, "--strict"], capture_output=True).returncode == 1


def test_batches_do_not_depend_on_workers_or_on_where_one_starts(myxtts, corpus, tmp_path):
    common = ["batches", "--train-data", corpus, "--batch-size", 4]
    one = report(myxtts, tmp_path, *common, "--num-workers", 1, "--num-batches", 8)["batches"]
    many = report(myxtts, tmp_path, *common, "--num-workers", 8, "--num-batches", 8)["batches"]
    later = report(myxtts, tmp_path, *common, "--start-batch", 5, "--num-batches", 3)["batches"]
    assert len(one) == 8 and one == many and one[5:] == later
    assert len({batch["hash"] for batch in one}) == 8
    other = report(myxtts, tmp_path, *common, "--seed", 2, "--num-batches", 8)["batches"]
    assert [b["ids"] for b in other] != [b["ids"] for b in one]


def test_ranks_share_a_global_batch(myxtts, corpus, tmp_path):
    common = ["batches", "--train-data", corpus, "--batch-size", 8, "--epoch", 2, "--num-batches", 3]
    whole = report(myxtts, tmp_path, *common)["batches"]
    for world in (2, 4):
        parts = [report(myxtts, tmp_path, *common, "--world-size", world, "--rank", rank)["batches"] for rank in range(world)]
        for index, batch in enumerate(whole):
            assert sum((part[index]["ids"] for part in parts), []) == batch["ids"]


def test_the_hash_is_that_of_the_content(myxtts, corpus, tmp_path):
    """Anybody can recompute it: tokens, mel, text lengths, mel lengths, each hashed with the hash so far as seed."""
    batch = report(myxtts, tmp_path, "batches", "--train-data", corpus, "--batch-size", 2, "--num-batches", 1)["batches"][0]
    texts = dict(line.split("|")[::2] for line in pathlib.Path(corpus / "metadata.csv").read_text().splitlines())
    rows, text_length = batch["shape"]["text"]
    tokens = np.zeros((rows, text_length), np.int32)
    mel = np.zeros(batch["shape"]["mel"], np.float32)
    text_lengths, mel_lengths = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    for row, clip in enumerate(batch["ids"]):
        letters = [ord(letter) for letter in texts[clip]]
        tokens[row, : len(letters)] = letters
        myxtts("mel", corpus / "wavs" / f"{clip}.wav", tmp_path / "one.npy")
        one = np.load(tmp_path / "one.npy")
        mel[row, : len(one)] = one
        text_lengths[row], mel_lengths[row] = len(letters), len(one)
    value = 0
    for part in (tokens, mel, text_lengths, mel_lengths):
        value = xxhash.xxh64_intdigest(part.tobytes(), value)
    assert batch["hash"] == f"{value:016x}"
