import json
import pathlib
import shutil
import struct
import subprocess
import tarfile

import numpy as np
import pytest
import soundfile
import xxhash
from conftest import BINARY
from mel_reference import reference


def report(myxtts, tmp_path, *arguments):
    out = tmp_path / "report.json"
    device = ["--device", "cpu"] if arguments[0] == "batches" else []
    myxtts(*arguments, *device, "--json", out)
    return json.loads(out.read_text())


def test_prepare_reports_the_corpus(myxtts, corpus, tmp_path):
    found = report(myxtts, tmp_path, "prepare", corpus, "--deep", "--batch-size", 8)
    assert found["clips"] == found["accepted"] == 40 and found["rejected"] == []
    assert found["sample_rates"] == {"22050": 40} and found["formats"] == {"wav pcm_16": 40}
    assert sum(found["mel_frames"].values()) == sum(found["text_lengths"].values()) == 40
    assert sum(shape["clips"] for shape in found["shapes"]) + found["held_out"] == 40 and found["held_out"] == 1
    assert 0 < found["padding"] < 0.25 and found["padding"] < found["padding_of_one_shape"] and found["hours"] > 0.01
    again = report(myxtts, tmp_path, "prepare", corpus, "--deep", "--batch-size", 8)
    assert again == found


def test_the_corpus_mean_is_that_of_its_mels(myxtts, corpus, tmp_path):
    found = report(myxtts, tmp_path, "prepare", corpus, "--deep")
    values = np.concatenate([reference("hifigan", soundfile.read(path)[0]).ravel() for path in (corpus / "wavs").iterdir()])
    assert abs(found["mel_mean"] - values.mean()) < 1e-4 and abs(found["mel_std"] - values.std()) < 1e-4


def wav(samples=22050, rate=22050, channels=1, bits=16, data=None, claimed=None, code=1):
    """A WAV file by hand, honest or not."""
    if data is None:
        data = (8000 * np.sin(np.arange(samples) * 0.05)).astype("<i2").tobytes()
    claimed = len(data) if claimed is None else claimed
    fmt = struct.pack("<HHIIHH", code, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    return b"RIFF" + struct.pack("<I", 36 + claimed) + b"WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", claimed) + data


def test_every_kind_of_bad_clip_and_row_is_named_and_nothing_else_is_lost(myxtts, corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns(".myxtts"))
    wavs = folder / "wavs"
    flac = tmp_path / "x.flac"
    soundfile.write(flac, 0.3 * np.sin(np.arange(44100) * 0.05), 22050)
    clips = {
        "empty": (b"", "is empty"),
        "nonsense": (b"not audio at all, not in the least", "unreadable"),
        "cut-header": (wav()[:30], "unreadable"),
        "lying-length": (wav(claimed=10**9), "unreadable"),
        "no-rate": (wav(rate=0), "unreadable"),
        "no-channels": (wav(channels=0), "unreadable"),
        "odd-bits": (wav(bits=13), "unreadable"),
        "unknown-code": (wav(code=0x1234), "unreadable"),
        "no-samples": (wav(data=b""), "no samples"),
        "one-sample": (wav(samples=1), "too short"),
        "silent": (wav(data=bytes(44100)), "silent"),
        "hiss": (wav(data=(20 * np.sin(np.arange(22050) * 0.05)).astype("<i2").tobytes()), "silent"),
        "cut-flac": (flac.read_bytes()[:40], "unreadable"),
    }
    rows, reasons = [], {}
    for name, (content, reason) in clips.items():
        (wavs / f"{name}.wav").write_bytes(content)
        rows.append(f"{name}|some words".encode())
        reasons[name] = reason
    (wavs / "folder.wav").mkdir()
    for name in ("blank", "invisible", "utf8", "replacement", "bell", "too-wordy", "gone-text"):
        (wavs / f"{name}.wav").write_bytes(wav())
    for row, reason in [
        (b"missing|words", "missing"), (b"folder|words", "folder"), (b"blank|   ", "text is empty"),
        ("invisible|\u200c\u200f".encode(), "nothing is left"), (b"utf8|\xff\xfe", "UTF-8"),
        ("replacement|a \ufffd".encode(), "U+FFFD"), (b"bell|ding \x07", "U+0007"),
        (b"too-wordy|" + b"word " * 30, "too short"), (b"gone-text", "fields"), (b"|words", "no id"),
        (b"../../../etc/passwd|words", "out of the corpus"), (b"/etc/passwd|words", "out of the corpus"),
        (b"demo-00003|once more", "duplicate"),
    ]:
        rows.append(row)
        reasons.setdefault(row.split(b"|")[0].decode(), reason)
    good = (folder / "metadata.csv").read_bytes().splitlines()
    (folder / "metadata.csv").write_bytes(b"\n".join(rows[:9] + good + rows[9:]) + b"\n")
    found = report(myxtts, tmp_path, "prepare", folder)
    assert found["accepted"] == 40 and found["clips"] == 40 + len(rows)
    told = {clip["id"]: clip["reason"] for clip in found["rejected"]}
    codes = {clip["id"]: clip["code"] for clip in found["rejected"]}
    for name, code in {
        "nonsense": "unreadable", "no-samples": "no_samples", "one-sample": "too_short", "silent": "silent", "missing": "missing",
        "blank": "empty_text", "invisible": "empty_text", "utf8": "bad_text", "bell": "unknown_character", "gone-text": "bad_row",
        "demo-00003": "duplicate_id", "../../../etc/passwd": "outside",
    }.items():
        assert codes[name] == code, (name, codes[name])
    assert len(found["rejected"]) == len(rows) >= 20 and set(told) == set(reasons)
    for name, reason in reasons.items():
        assert reason in told[name], (name, told[name])
    shown = myxtts("prepare", folder).stdout
    assert all(f"{name or '(no id)'}: {told[name]}" in shown for name in told)
    assert subprocess.run([BINARY, "prepare", folder, "--strict"], capture_output=True).returncode == 1
    # What is fed is what is fed without any of them.
    common = ["--batch-size", 4, "--num-batches", 5]
    clean = report(myxtts, tmp_path, "batches", "--train-data", corpus, *common)["batches"]
    assert report(myxtts, tmp_path, "batches", "--train-data", folder, *common)["batches"] == clean
    # And a voice can be trained on it.
    done = myxtts("train", "--train-data", folder, "--checkpoint-dir", tmp_path / "run", "--batch-size", 2, "--max-steps", 1)
    assert f"{len(rows)} clips of {40 + len(rows)} not used" in done.stderr and "1 of 1 steps" in done.stdout


def test_a_clip_that_breaks_after_prepare_is_replaced_the_same_way_each_time(myxtts, corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns(".myxtts"))
    myxtts("prepare", folder, "--batch-size", 4)
    common = ["batches", "--train-data", folder, "--batch-size", 4, "--num-batches", 99]
    before = report(myxtts, tmp_path, *common)["batches"]
    broken = before[2]["ids"][1]
    (folder / "wavs" / f"{broken}.wav").write_bytes(b"RIFF, no more")
    quarantine = tmp_path / "quarantine.jsonl"
    after = report(myxtts, tmp_path, *common, "--quarantine", quarantine)["batches"]
    again = report(myxtts, tmp_path, *common, "--num-workers", 8)["batches"]
    assert after == again
    for old, new in zip(before, after, strict=True):
        assert old["shape"] == new["shape"]
        if broken in old["ids"]:
            (bad,) = new["replaced"]
            assert bad["id"] == broken and bad["by"] in new["ids"] and broken not in new["ids"] and bad["reason"]
            assert [i for i in old["ids"] if i != broken] == [i for i, was in zip(new["ids"], old["ids"]) if was != broken]
        else:
            assert old == new and new["replaced"] == []
    (line,) = quarantine.read_text().splitlines()
    assert json.loads(line)["id"] == broken and {"path", "byte", "reason", "replaced_by"} <= set(json.loads(line))
    assert json.loads(line)["code"] == "changed"


def test_validation_shows_every_clip_held_out_once(myxtts, corpus, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("data: {val_share: 0.2}\n")
    common = ["batches", "--train-data", corpus, "--batch-size", 4, "--config", config, "--num-batches", 99]
    held_out = sum((b["ids"] for b in report(myxtts, tmp_path, *common, "--validation")["batches"]), [])
    trained = sum((b["ids"] for b in report(myxtts, tmp_path, *common)["batches"]), [])
    assert len(held_out) == len(set(held_out)) == 8 and not set(held_out) & set(trained)


def test_a_packed_corpus_and_a_web_dataset_feed_the_same_batches(myxtts, corpus, tmp_path):
    common = ["--batch-size", 4, "--num-batches", 99]
    plain = report(myxtts, tmp_path, "batches", "--train-data", corpus, *common)["batches"]
    myxtts("prepare", corpus, "--pack", tmp_path / "packed")
    assert [p.name for p in (tmp_path / "packed").iterdir()] == ["shard-00000.tar"]
    assert report(myxtts, tmp_path, "batches", "--train-data", tmp_path / "packed", *common)["batches"] == plain
    (tmp_path / "web").mkdir()
    texts = dict(line.split("|")[::2] for line in (corpus / "metadata.csv").read_text().splitlines())
    with tarfile.open(tmp_path / "web" / "000.tar", "w") as tar:
        for name, text in texts.items():
            (tmp_path / "one.txt").write_text(text)
            tar.add(corpus / "wavs" / f"{name}.wav", f"{name}.wav")
            tar.add(tmp_path / "one.txt", f"{name}.txt")
    web = report(myxtts, tmp_path, "batches", "--train-data", tmp_path / "web", *common, "--config", no_validation(tmp_path))
    same = report(myxtts, tmp_path, "batches", "--train-data", corpus, *common, "--config", no_validation(tmp_path))
    assert web["batches"] == same["batches"]
    myxtts("prepare", corpus, "--pack", tmp_path / "packed", status=2)


def no_validation(tmp_path):
    path = tmp_path / "no_validation.yaml"
    path.write_text("data: {val_share: 0}\n")
    return path


def test_the_page_and_the_vocabulary(myxtts, corpus, tmp_path):
    myxtts("prepare", corpus, "--html", tmp_path / "page.html", "--save-vocabulary", tmp_path / "v.json")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2 and "40 clips accepted" in page and "http" not in page
    words = json.loads((tmp_path / "v.json").read_text())
    assert "a" in words["symbols"]
    words["symbols"].remove("a")
    (tmp_path / "less.json").write_text(json.dumps(words))
    found = report(myxtts, tmp_path, "prepare", corpus, "--vocabulary", tmp_path / "less.json")
    assert found["rejected"] and all("not in the vocabulary" in clip["reason"] for clip in found["rejected"])
    myxtts("prepare", corpus, "--vocabulary", tmp_path / "page.html", status=2)


def test_persian_survives_from_prepare_to_tokens_and_back(myxtts, tmp_path):
    folder = tmp_path / "fa"
    myxtts("demo-data", folder, "--clips", 20, "--language", "fa", "--seed", 5)
    before = (folder / "metadata.csv").read_bytes()
    found = report(myxtts, tmp_path, "prepare", folder, "--language", "fa", "--text-tokens", "characters", "--save-vocabulary", tmp_path / "v.json", "--pack", tmp_path / "p")
    assert found["accepted"] == 20 and (folder / "metadata.csv").read_bytes() == before
    texts = {line.split("|")[0]: line.split("|")[2] or line.split("|")[1] for line in before.decode().splitlines()}
    with tarfile.open(tmp_path / "p" / "shard-00000.tar") as tar:
        lines = tar.extractfile("myxtts-index.jsonl").read().decode().splitlines()
    assert {json.loads(line)["id"]: json.loads(line)["text"] for line in lines} == texts
    symbols = json.loads((tmp_path / "v.json").read_text())["symbols"]
    assert set(symbols) == set("".join(texts.values()))


def test_a_bad_clip_is_listed_and_strict_makes_it_an_error(myxtts, corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns(".myxtts"))
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
    shutil.rmtree(corpus / ".myxtts")
    cold = report(myxtts, tmp_path, *common, "--num-workers", 8, "--num-batches", 8)["batches"]
    assert cold == one
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
            for rank, part in enumerate(parts):  # every so manieth row
                assert part[index]["ids"] == batch["ids"][rank::world]


def test_the_hash_is_that_of_the_content(myxtts, corpus, tmp_path):
    """Anybody can recompute it: tokens, mel, text lengths, mel lengths, each hashed with the hash so far as seed."""
    config = tmp_path / "plain.yaml"
    config.write_text("data:\n  text_tokens: characters\n  blank_tokens: false\n")
    batch = report(myxtts, tmp_path, "batches", "--train-data", corpus, "--config", config, "--batch-size", 2, "--num-batches", 1)["batches"][0]
    texts = dict(line.split("|")[::2] for line in pathlib.Path(corpus / "metadata.csv").read_text().splitlines())
    myxtts("prepare", corpus, "--config", config, "--save-vocabulary", tmp_path / "v.json")
    numbers = {symbol: 2 + i for i, symbol in enumerate(json.loads((tmp_path / "v.json").read_text())["symbols"])}
    rows, text_length = batch["shape"]["text"]
    tokens = np.zeros((rows, text_length), np.int32)
    mel = np.zeros(batch["shape"]["mel"], np.float32)
    text_lengths, mel_lengths = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    for row, clip in enumerate(batch["ids"]):
        letters = [numbers[letter] for letter in texts[clip].lower()]
        tokens[row, : len(letters)] = letters
        myxtts("mel", corpus / "wavs" / f"{clip}.wav", tmp_path / "one.npy")
        one = np.load(tmp_path / "one.npy")
        mel[row, : len(one)] = one
        text_lengths[row], mel_lengths[row] = len(letters), len(one)
    value = 0
    for part in (tokens, mel, text_lengths, mel_lengths):
        value = xxhash.xxh64_intdigest(part.tobytes(), value)
    assert batch["hash"] == f"{value:016x}"


def test_prepare_advises_what_would_make_a_better_voice(myxtts, corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns(".myxtts"))
    clips = sorted((folder / "wavs").iterdir())
    noise = np.random.default_rng(1)

    def change(clip, work):
        samples, rate = soundfile.read(clip)
        soundfile.write(clip, work(samples), rate)
        return clip.stem

    changed = {
        "quiet": change(clips[0], lambda x: 0.01 * x),
        "noisy": change(clips[1], lambda x: x + 0.2 * noise.standard_normal(len(x))),
        "clipping": change(clips[2], lambda x: np.clip(30 * x, -1, 1)),
        "silence_at_ends": change(clips[3], lambda x: np.concatenate([np.zeros(20000), x])),
        "text_does_not_fit": change(clips[4], lambda x: np.tile(x, 3)),
    }
    found = {advice["code"]: advice for advice in report(myxtts, tmp_path, "prepare", folder)["advice"]}
    for code, clip in changed.items():
        assert clip in found[code]["clips"], (code, found.get(code))
    assert found["text_does_not_fit"]["clips"] == [clips[4].stem]
    assert found["too_little_speech"]["clips"] == [] and found["quiet"]["examined"] == 40 and found["quiet"]["way_out"]
    printed = myxtts("prepare", folder, "--html", tmp_path / "page.html").stdout
    assert "advice" in printed and clips[2].stem in printed and "Advice" in (tmp_path / "page.html").read_text()
    codes = {advice["code"] for advice in report(myxtts, tmp_path, "prepare", folder, "--trim-silence")["advice"]}
    assert "silence_at_ends" not in codes
    good = {advice["code"] for advice in report(myxtts, tmp_path, "prepare", corpus)["advice"]}
    assert good <= {"too_little_speech", "little_speech"}


@pytest.mark.parametrize("clips, size", [(2, 1), (3, 1), (12, 4)])
def test_a_corpus_too_small_for_a_batch_names_a_size_that_fits(myxtts, tmp_path, clips, size):
    myxtts("demo-data", tmp_path / "few", "--clips", clips, "--seed", 2)
    refused = myxtts("batches", "--train-data", tmp_path / "few", status=2)
    assert refused.stderr.endswith(f"has {clips} clips, too few for a batch of 16; give --batch-size {size}\n")
    assert "per epoch in" in myxtts("batches", "--train-data", tmp_path / "few", "--batch-size", size).stdout
