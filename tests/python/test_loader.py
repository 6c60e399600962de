import contextlib
import gc
import json
import os
import pickle
import shutil
import threading
import time

import numpy as np
import pytest

import myxtts


def hashes(loader, count):
    return [loader.next().hash() for _ in range(count)]


def printed(program, tmp_path, corpus, *flags):
    """Batches as the command line shows them."""
    program("batches", "--train-data", corpus, "--device", "cpu", *flags, "--json", tmp_path / "batches.json")
    return json.loads((tmp_path / "batches.json").read_text())["batches"]


def test_batches_are_those_of_the_command_line(program, corpus, tmp_path):
    with myxtts.Loader(corpus, batch_size=4, shapes=3, seed=7, device="cpu") as loader:
        assert len(loader) >= 6 and len(loader.shapes) == 3
        seen = list(loader)
    expected = printed(program, tmp_path, corpus, "--batch-size", 4, "--shape-buckets", 3, "--seed", 7, "--num-batches", 999)
    assert [batch.hash() for batch in seen] == [batch["hash"] for batch in expected]
    assert [batch.ids for batch in seen] == [batch["ids"] for batch in expected]
    assert [list(batch.mel.shape) for batch in seen] == [batch["shape"]["mel"] for batch in expected]


def test_ranks_share_the_batches_of_one_process(program, corpus, tmp_path):
    for rank in range(2):
        loader = myxtts.Loader(corpus, batch_size=4, rank=rank, world_size=2, device="cpu")
        expected = printed(program, tmp_path, corpus, "--batch-size", 4, "--rank", rank, "--world-size", 2)
        assert hashes(loader, 5) == [batch["hash"] for batch in expected]
        assert all(shape["batch_size"] == 2 for shape in loader.shapes)
    with pytest.raises(myxtts.Error, match="3 ranks cannot share batches of 4 clips equally"):
        myxtts.Loader(corpus, batch_size=4, rank=0, world_size=3, device="cpu")
    with pytest.raises(ValueError, match="rank"):
        myxtts.Loader(corpus, rank=-1)


def test_batches_of_so_many_frames_are_shared_as_on_the_command_line(program, corpus, tmp_path):
    file = tmp_path / "frames.yaml"
    file.write_text("data: {batch_size: 4, batch_frames: 1500}\n")
    for rank in range(2):
        loader = myxtts.Loader(corpus, config=file, rank=rank, world_size=2, device="cpu")
        assert len({shape["batch_size"] for shape in loader.shapes}) > 1
        expected = printed(program, tmp_path, corpus, "--config", file, "--rank", rank, "--world-size", 2)
        assert hashes(loader, 5) == [batch["hash"] for batch in expected]


def test_ranks_on_one_machine_share_its_cores(corpus, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    alone = myxtts.Loader(corpus, batch_size=4, device="cpu")
    shared = myxtts.Loader(corpus, batch_size=4, rank=0, world_size=2, device="cpu")
    assert shared.stats()["active_workers"] == 1 and "1 worker" in dict(shared.facts)["loader"]
    assert alone.stats()["active_workers"] == len(os.sched_getaffinity(0)) or "1 worker" not in dict(alone.facts)["loader"]


def test_a_loop_takes_an_epoch_and_one_that_was_left_is_continued(corpus):
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        assert [(batch.epoch, batch.index) for batch in loader] == [(0, i) for i in range(len(loader))]
        assert (loader.epoch, loader.index) == (1, 0)
        for batch in loader:
            if batch.index == 1:
                break
        assert [(batch.epoch, batch.index) for batch in loader] == [(1, i) for i in range(2, len(loader))]


def test_validation_visits_every_clip_held_out(corpus):
    with myxtts.Loader(corpus, batch_size=4, device="cpu", validation=True, val_share=0.2) as held_out:
        batches = [batch.cpu() for batch in held_out]
    ids = [name for batch in batches for name in batch.ids if name is not None]
    assert len(ids) == len(set(ids)) > 0
    for batch in batches:
        for name, tokens, frames in zip(batch.ids, batch.lengths["tokens"], np.asarray(batch.mel_lengths), strict=True):
            assert (name is None) == (tokens == 0) == (frames == 0)
    with myxtts.Loader(corpus, batch_size=4, device="cpu", val_share=0.2) as loader:
        assert not {name for batch in loader for name in batch.ids} & set(ids)


def test_a_state_continues_with_the_same_batches_whatever_the_workers(corpus):
    loader = myxtts.Loader(corpus, batch_size=4, device="cpu")
    hashes(loader, len(loader) + 3)
    state = loader.state_dict()
    assert len(pickle.dumps(state)) < 1024
    expected = hashes(loader, 4)
    for options in ({"workers": 1}, {"workers": 3, "pipeline_buffer_size": 4}):
        again = myxtts.Loader(corpus, batch_size=4, device="cpu", **options)
        again.load_state_dict(json.loads(json.dumps(state)))
        assert (again.epoch, again.index) == (1, 3)
        assert hashes(again, 4) == expected
        again.load_state_dict(state)  # back
        assert hashes(again, 1) == expected[:1]


def test_a_state_of_another_plan_is_refused(corpus, tmp_path):
    options = {"batch_size": 4, "device": "cpu", "text_tokens": "characters"}
    state = myxtts.Loader(corpus, **options).state_dict()
    other, copied = tmp_path / "other", tmp_path / "copied"
    for folder in (other, copied):
        shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns(".myxtts"), copy_function=shutil.copyfile)
    texts = (other / "manifest.jsonl").read_text()
    (other / "manifest.jsonl").write_text(texts.replace("er", "re"))  # as many tokens: the same clips in the same shapes
    given = ({"seed": 2}, {"batch_size": 2}, {"shapes": 1}, {"preset": "matcha"}, {"arrays": ["mel", "mel_lengths"]}, {"path": other})
    for one in given:
        with pytest.raises(myxtts.Error, match="another corpus, seed, batch size") as caught:
            myxtts.Loader(**{"path": corpus} | options | one).load_state_dict(state)
        assert caught.value.code == "invalid_input"
    myxtts.Loader(copied, **options).load_state_dict(state)
    loader = myxtts.Loader(corpus, batch_size=4, device="cpu")
    for wrong in (state | {"version": 2}, state | {"index": 10**6}):
        with pytest.raises(myxtts.Error):
            loader.load_state_dict(wrong)


def test_a_loader_that_failed_or_could_not_be_opened_continues_after_a_state(corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "corpus")
    clips = {file: file.read_bytes() for file in (tmp_path / "corpus" / "wavs").iterdir()}
    with myxtts.Loader(tmp_path / "corpus", batch_size=4, device="cpu", pipeline_buffer_size=2) as loader:
        expected = hashes(loader, len(loader))
        for file in clips:
            file.write_bytes(b"RIFF")
        with pytest.raises(myxtts.Error, match="can be read"):
            while True:
                loader.next()
        for file, content in clips.items():
            file.write_bytes(content)
        with pytest.raises(myxtts.Error, match="can be read"):
            loader.next()
        loader.load_state_dict(loader.state_dict())
        assert loader.next().index == (loader.index or len(loader)) - 1
        loader.load_state_dict(loader.state_dict() | {"epoch": 0, "index": 0})
        assert hashes(loader, len(loader)) == expected


def test_a_state_for_which_there_is_no_memory_can_be_loaded_later(corpus, python):
    code = """
import resource, sys
import myxtts
loader = myxtts.Loader(sys.argv[1], batch_size=4, device="cpu", workers=1, pipeline_buffer_size=300)
expected = [loader.next().hash() for _ in range(2)]
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used - (100 << 20), limits[1]))
try:
    loader.load_state_dict(loader.state_dict() | {"index": 1})
except MemoryError:
    print("no memory")
resource.setrlimit(resource.RLIMIT_AS, limits)
print(loader.next().hash() == expected[1])
"""
    assert python(code, corpus).stdout == "no memory\nTrue\n"


def test_a_loader_closed_while_a_state_is_loaded_stays_closed(corpus):
    for attempt in range(30):
        loader = myxtts.Loader(corpus, batch_size=4, device="cpu", workers=1)
        state = loader.state_dict() | {"index": 1}

        def load(loader=loader, state=state):
            with contextlib.suppress(myxtts.Error):
                loader.load_state_dict(state)

        thread = threading.Thread(target=load)
        thread.start()
        time.sleep(0.0002 * attempt)
        loader.close()
        thread.join()
        with pytest.raises(myxtts.Error, match="it is closed"):
            loader.next()


def test_numpy_and_memoryview_read_the_ring_itself(corpus):
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        batch = loader.next()
        for name, array in batch.items():
            for view in (np.asarray(array), np.from_dlpack(array), np.frombuffer(memoryview(array).cast("B"), array.dtype)):
                assert view.ctypes.data == array.data_ptr() == array.__array_interface__["data"][0], name
                assert view.dtype == array.dtype and view.size == np.prod(array.shape)
            assert np.asarray(array).shape == array.shape and len(array) == array.shape[0]
            assert array.nbytes == memoryview(array).nbytes and array.device == "cpu"
            assert array.__array__().ctypes.data == array.data_ptr() and array.__array__("float64").dtype == "float64"
        assert batch["mel"].data_ptr() == batch.mel.data_ptr()
        assert not hasattr(batch.mel, "__cuda_array_interface__")


def test_dlpack_gives_what_the_consumer_asks_for(corpus):
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        mel = loader.next().mel
        assert mel.__dlpack_device__() == (1, 0)
        assert '"dltensor"' in repr(mel.__dlpack__()) and '"dltensor"' in repr(mel.__dlpack__(max_version=(0, 8)))
        assert '"dltensor_versioned"' in repr(mel.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False))
        copy = np.from_dlpack(mel, copy=True)
        assert copy.ctypes.data != mel.data_ptr() and (copy == np.asarray(mel)).all()
        for wrong in ({"stream": 1}, {"dl_device": (2, 0)}):
            with pytest.raises(BufferError):
                mel.__dlpack__(**wrong)


def test_a_batch_is_a_mapping_of_its_arrays(corpus):
    names = ["mel", "tokens", "speaker", "text_lengths"]
    with myxtts.Loader(corpus, batch_size=4, device="cpu", arrays=names) as loader:
        batch = loader.next()
        assert batch.keys() == list(batch) == names == list(dict(batch)) and len(batch) == 4
        assert "speaker" in batch and "samples" not in batch
        assert sorted(loader.speakers) == ["speaker-0", "speaker-1"] or len(loader.speakers) == 2
        assert set(np.asarray(batch.speaker)) <= {0, 1}
        assert batch.lengths["tokens"] == np.asarray(batch.text_lengths).tolist()
        assert np.asarray(batch.tokens).max() < loader.vocabulary_size == len(loader.symbols) + 2
        with pytest.raises(AttributeError, match="no array 'samples'"):
            batch.samples
        with pytest.raises(KeyError, match="samples"):
            batch["samples"]


def test_crops_come_as_a_vocoder_is_trained_on_them(corpus):
    with myxtts.Loader(corpus, batch_size=4, device="cpu", arrays=["samples", "mel", "mel_lengths", "crop"]) as loader:
        batch = loader.next()
        samples, mel = np.asarray(batch.samples), np.asarray(batch.mel)
        assert samples.shape == (4, 16384) and mel.shape == (4, 64, 80)
        assert batch.crop.shape == (4, 2)
        inside = slice(4, -4)  # a crop's own ends are mirrored
        assert np.abs(myxtts.mel(samples)[:, inside] - mel[:, inside]).max() < 1e-3


def test_crops_do_not_depend_on_what_came_before(corpus):
    options = {"batch_size": 4, "arrays": ["samples", "mel", "mel_lengths"], "device": "cpu", "pipeline_buffer_size": 2}
    options |= {"validation": True, "val_share": 0.25, "workers": 1}
    with myxtts.Loader(corpus, **options) as loader, myxtts.Loader(corpus, **options) as fresh:
        empty_rows = 0
        for _ in range(4 * len(loader)):
            fresh.load_state_dict(loader.state_dict())
            batch = loader.next()
            assert fresh.next().hash() == batch.hash(), (batch.epoch, batch.index)
            empty_rows += batch.ids.count(None)
        assert empty_rows > 0


def test_references_are_of_the_same_speaker(corpus):
    arrays = ["tokens", "mel", "text_lengths", "mel_lengths", "speaker", "language", "reference", "reference_lengths"]
    with myxtts.Loader(corpus, batch_size=4, device="cpu", arrays=arrays) as loader:
        batch = loader.next()
        assert batch.reference.shape == (2, 256, 80)
        assert (np.asarray(batch.reference_lengths) > 0).all()


@pytest.mark.parametrize(
    "arrays, complaint",
    [
        (["mle"], "did you mean mel"),
        (["tokens"], "do not name mel"),
        (["mel", "mel"], "twice"),
        (["mel", "tokens", "samples"], "crops"),
        (["mel", "crop"], "add samples"),
        (["mel", "reference_lengths"], "add reference"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(corpus, arrays, complaint):
    with pytest.raises(myxtts.Error, match=complaint):
        myxtts.Loader(corpus, arrays=arrays, device="cpu")


def test_settings_are_keywords_and_a_file(corpus, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("data:\n  batch_size: 4\n  shape_buckets: 2\n")
    with myxtts.Loader(corpus, config=file, shapes=1, n_mels=40, device="cpu") as loader:
        assert loader.next().mel.shape[::2] == (4, 40) and len(loader.shapes) == 1
    with myxtts.Loader(corpus, preset="vocos", batch_size=4, device="cpu") as loader:
        assert loader.sample_rate == 24000 and loader.next().mel.shape[2] == 100
    wrong = {"batch_sise": 4, "batch_size": -4, "epochs": 3}
    for key, value in wrong.items():
        with pytest.raises(myxtts.Error) as caught:
            myxtts.Loader(corpus, device="cpu", **{key: value})
        assert caught.value.code == "invalid_setting" and key in caught.value.setting and caught.value.way_out
    with pytest.raises(TypeError, match="train_data"):
        myxtts.Loader(corpus, train_data=corpus)
    with pytest.raises(TypeError, match="list of names"):
        myxtts.Loader(corpus, arrays="mel")


def test_an_error_has_parts_and_can_be_sent_to_another_process(tmp_path):
    with pytest.raises(myxtts.Error) as caught:
        myxtts.Loader(tmp_path / "nothing")
    error = caught.value
    assert (error.code, error.where) == ("invalid_input", "corpus") and "nothing" in error.message
    assert str(pickle.loads(pickle.dumps(error))) == str(error) and str(error).startswith("[corpus] ")


def test_a_batch_that_is_kept_is_never_overwritten(corpus):
    with myxtts.Loader(corpus, batch_size=2, device="cpu", pipeline_buffer_size=6) as loader:
        kept = [np.asarray(loader.next().mel) for _ in range(3)]  # the array alone keeps its batch
        before = [array.copy() for array in kept]
        for _ in range(5 * len(loader)):
            loader.next()
        assert all((now == then).all() for now, then in zip(kept, before, strict=True))


def test_whoever_keeps_every_batch_gets_an_error_and_may_go_on_after_letting_go(corpus):
    with myxtts.Loader(corpus, batch_size=2, device="cpu", pipeline_buffer_size=4, auto_tune_performance=False) as loader:
        kept = [loader.next() for _ in range(4)]
        with pytest.raises(myxtts.Error, match="all 4 batches of the ring are held") as caught:
            loader.next()
        assert "data.pipeline_buffer_size" in caught.value.way_out
        copies = [batch.cpu() for batch in kept]
        expected = [batch.hash() for batch in kept]
        kept.clear()
        assert loader.next().index == 4
        for _ in range(2 * len(loader)):
            copies.append(loader.next().cpu())
        assert [batch.hash() for batch in copies[:4]] == expected


def test_batches_outlive_their_loader(corpus):
    loader = myxtts.Loader(corpus, batch_size=2, device="cpu")
    batch, expected = loader.next(), None
    expected = batch.hash()
    loader.close()
    loader.close()
    with pytest.raises(myxtts.Error, match="it is closed") as caught:
        loader.next()
    assert caught.value.code == "stopped"
    del loader
    gc.collect()
    assert batch.hash() == expected and len(batch.ids) == 2


def test_threads_share_the_batches_of_an_epoch(corpus):
    seen = []
    with myxtts.Loader(corpus, batch_size=2, device="cpu") as loader:
        count = len(loader)

        def take():
            for _ in range(count // 4):
                batch = loader.next()
                seen.append((batch.epoch, batch.index, batch.hash()))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    again = myxtts.Loader(corpus, batch_size=2, device="cpu")
    assert sorted(seen) == [(0, i, again.next().hash()) for i in range(count // 4 * 4)]


def test_threads_that_loop_stop_with_the_epoch(corpus):
    with myxtts.Loader(corpus, batch_size=2, device="cpu") as loader:
        for epoch in range(10):
            loops, seen = [iter(loader) for _ in range(4)], []
            threads = [threading.Thread(target=lambda loop=loop: seen.extend((one.epoch, one.index) for one in loop)) for loop in loops]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(seen) == [(epoch, index) for index in range(len(loader))]


def test_closing_from_elsewhere_lets_a_waiting_thread_go(corpus, python, blocking_reads, tmp_path):
    (tmp_path / "gate").touch()
    code = """
import os, sys, threading, time
gate, corpus = sys.argv[1:]
import myxtts
myxtts.prepare(corpus, val_share=0.1)
os.environ["GATE"] = gate
loader = myxtts.Loader(corpus, batch_size=4, device="cpu", val_share=0.1)
caught = []
def take():
    try:
        loader.next()
    except myxtts.Error as error:
        caught.append(error.code)
thread = threading.Thread(target=take)
thread.start()
time.sleep(0.2)
closer = threading.Thread(target=loader.close)
closer.start()
thread.join()
os.remove(gate)
closer.join()
print(caught)
"""
    assert python(code, tmp_path / "gate", corpus, preload=blocking_reads).stdout == "['stopped']\n"


def test_an_exception_in_the_loop_leaves_the_loader_as_it_is(corpus):
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        with pytest.raises(ZeroDivisionError):
            for batch in loader:
                1 / (2 - batch.index)
        assert loader.next().index == 3


def test_a_broken_clip_is_replaced_and_told(program, tmp_path):
    program("demo-data", tmp_path / "corpus", "--clips", 20)
    corpus = tmp_path / "corpus"
    myxtts.prepare(corpus)
    (corpus / "wavs" / "demo-00004.wav").write_bytes(b"RIFF")
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        replaced = [bad for _ in range(2 * len(loader)) for bad in loader.next().replaced]
    assert {bad["id"] for bad in replaced} == {"demo-00004"} and all(bad["by"] and bad["reason"] for bad in replaced)
    for file in (corpus / "wavs").iterdir():
        file.write_bytes(b"RIFF")
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader, pytest.raises(myxtts.Error, match="demo-000"):
        loader.next()


def resident_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))


@pytest.mark.parametrize("kept", [0, 8])
def test_memory_stays_flat_over_ten_thousand_batches(corpus, kept):
    with myxtts.Loader(corpus, batch_size=1, shapes=2, device="cpu", pipeline_buffer_size=16, auto_tune_performance=False) as loader:
        window = []

        def take(count):
            for _ in range(count):
                batch = loader.next()
                window.append([np.asarray(batch.mel), batch.tokens.__dlpack__(max_version=(1, 0)), batch.ids, dict(batch)])
                del batch
                del window[: len(window) - kept]

        take(2000)
        before = resident_mb()
        take(8000)
        assert resident_mb() < before + 2  # 260 bytes per batch
