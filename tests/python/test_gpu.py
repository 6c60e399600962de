"""With a GPU, and a torch that can use it."""
import gc
import threading
import time

import numpy as np
import pytest
from conftest import mel_of_program, noise

import myxtts

torch = pytest.importorskip("torch")
no_gpu = myxtts.device_count() == 0 or not torch.cuda.is_available()
pytestmark = pytest.mark.skipif(no_gpu, reason="no GPU here that this build and torch can use")

DEVICE = "cuda:0"


def on_gpu(corpus, **options):
    return myxtts.Loader(corpus, **{"batch_size": 4, "device": DEVICE} | options)


def test_tensors_lie_in_the_ring_and_agree_with_the_cpu(corpus):
    with on_gpu(corpus) as loader, myxtts.Loader(corpus, batch_size=4, device="cpu") as other:
        for batch, expected in zip(loader, other, strict=True):
            for name, array in batch.items():
                tensor = torch.from_dlpack(array)
                assert tensor.data_ptr() == array.data_ptr() == array.__cuda_array_interface__["data"][0]
                assert tensor.device == torch.device(DEVICE) and array.device == DEVICE
                limit = 2e-3 if name == "mel" else 0
                assert np.abs(tensor.cpu().numpy() - np.asarray(expected[name])).max() <= limit
            assert batch.ids == expected.ids and batch.cpu().hash() == batch.hash()


def test_torch_takes_the_cuda_interface_without_a_copy(corpus):
    with on_gpu(corpus) as loader:
        mel = loader.next().mel
        assert torch.as_tensor(mel, device=DEVICE).data_ptr() == mel.data_ptr()


def test_the_host_is_refused_or_given_a_copy(corpus):
    with on_gpu(corpus) as loader:
        batch = loader.next()
        with pytest.raises(myxtts.Error, match="take batch.cpu"):
            np.asarray(batch.mel)
        with pytest.raises(BufferError):
            memoryview(batch.mel)
        copy = np.from_dlpack(batch.mel, device="cpu")
        assert (copy == torch.from_dlpack(batch.mel).cpu().numpy()).all()
        assert (np.asarray(batch.cpu().mel) == copy).all()


@pytest.mark.parametrize("streams", [1, 3])
def test_work_on_any_stream_sees_its_batch_though_the_ring_is_reused(corpus, streams):
    """Each stream is kept busy, so that batches are let go of on the host long before the work on them begins."""
    with on_gpu(corpus) as loader:
        expected = [torch.from_dlpack(batch.mel).double().sum().item() for batch in loader]
    aside = [torch.cuda.Stream() for _ in range(streams)]
    sums = []
    with on_gpu(corpus, pipeline_buffer_size=3, auto_tune_performance=False) as loader:
        for _ in range(10):
            for batch in loader:
                if batch.epoch > 0:
                    break
                with torch.cuda.stream(aside[batch.index % streams]):
                    mel = torch.from_dlpack(batch.mel)
                    torch.cuda._sleep(20_000_000)
                    sums.append(mel.double().sum())
                del mel, batch
    torch.cuda.synchronize()
    assert [one.item() for one in sums] == expected


def test_a_tensor_that_is_kept_is_never_overwritten_and_keeping_all_is_an_error(corpus):
    with on_gpu(corpus, pipeline_buffer_size=4, auto_tune_performance=False) as loader:
        kept = [torch.from_dlpack(loader.next().mel) for _ in range(4)]
        before = [tensor.clone() for tensor in kept]
        with pytest.raises(myxtts.Error, match="are held"):
            loader.next()
        kept.pop(), before.pop()
        for _ in range(3 * len(loader)):
            loader.next()
        assert all(torch.equal(now, then) for now, then in zip(kept, before, strict=True))


def test_tensors_outlive_their_loader(corpus):
    loader = on_gpu(corpus)
    tensor = torch.from_dlpack(loader.next().mel)
    before = tensor.clone()
    loader.close()
    del loader
    gc.collect()
    assert torch.equal(tensor, before)


def test_memory_of_the_gpu_stays_flat(corpus):
    with on_gpu(corpus) as loader:
        aside = torch.cuda.Stream()

        def take(count):
            for _ in range(count):
                batch = loader.next()
                with torch.cuda.stream(aside):
                    torch.from_dlpack(batch.mel).sum()
            torch.cuda.synchronize()

        take(500)
        free = torch.cuda.mem_get_info()[0]
        take(3000)
        assert torch.cuda.mem_get_info()[0] > free - (4 << 20)


def test_batches_made_on_the_host_are_copied_when_taken(corpus):
    with on_gpu(corpus, prefetch_to_gpu=False) as loader, myxtts.Loader(corpus, batch_size=4, device="cpu") as other:
        assert [loader.next().hash() for _ in range(3)] == [other.next().hash() for _ in range(3)]


@pytest.mark.parametrize("preset", list(myxtts.presets()))
def test_the_mel_of_a_tensor_is_that_of_the_program_to_the_bit(program, tmp_path, preset):
    samples = noise(20000)
    for rate in (int(myxtts.presets()[preset]["sample_rate"]), 48000):
        expected = mel_of_program(program, tmp_path, samples, rate, preset, DEVICE)
        for given in (torch.tensor(samples), torch.tensor(samples) / 32768):
            made = myxtts.mel(given.to(DEVICE), sample_rate=rate, preset=preset)
            assert made.is_cuda and made.cpu().numpy().tobytes() == expected.tobytes()


def test_mels_of_many_clips_of_a_tensor_and_on_another_stream():
    samples = torch.randn(150, 5000, device=DEVICE) * 0.1
    alone = torch.stack([myxtts.mel(row) for row in samples])
    assert torch.equal(myxtts.mel(samples), alone) and torch.equal(myxtts.mel(samples[::2]), alone[::2])
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(20_000_000)
        assert torch.equal(myxtts.mel(samples * 1.0), alone)
    assert torch.equal(myxtts.mel(samples.T.contiguous().T), alone)  # strided
    assert torch.equal(myxtts.MelSpectrogram(preset="hifigan")(samples), alone.transpose(1, 2))


def test_a_mel_that_needs_too_much_memory_leaves_the_others_as_they_are():
    short = torch.randn(64, 22050, device=DEVICE)
    expected = myxtts.mel(short)
    long = torch.zeros(64 << 20, device=DEVICE)
    torch.cuda.empty_cache()
    hog = torch.empty(torch.cuda.mem_get_info()[0] - (200 << 20), dtype=torch.uint8, device=DEVICE)
    with pytest.raises(myxtts.Error) as caught:
        myxtts.mel(long)
    assert caught.value.code == "out_of_memory" or "memory" in str(caught.value)
    assert torch.equal(myxtts.mel(short), expected)
    del hog
    torch.cuda.empty_cache()
    assert myxtts.mel(long).shape[1] == 80


def test_a_long_clip_after_many_short_ones_needs_memory_for_itself_alone():
    myxtts.mel(torch.randn(64, 22050, device=DEVICE))
    long = torch.zeros(3600 * 22050, device=DEVICE)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    myxtts.mel(long)
    assert torch.cuda.mem_get_info()[0] > free - (2 << 30)


@pytest.mark.parametrize("mode", ["global", "thread_local"])
def test_a_graph_is_captured_while_the_loader_works(corpus, mode):
    """The loader's threads wait for events, pin memory and register files all the while."""
    for _ in range(5):
        with on_gpu(corpus, batch_size=1, auto_tune_performance=False) as loader:
            stop = threading.Event()

            def drain(loader=loader, stop=stop):
                while not stop.is_set():
                    loader.next()

            drainer = threading.Thread(target=drain)
            drainer.start()
            values, graph = torch.ones(1 << 20, device=DEVICE), torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            try:
                with torch.cuda.graph(graph, capture_error_mode=mode):
                    for _ in range(300):
                        values.add_(1)
                    time.sleep(0.1)
            finally:
                stop.set()
                drainer.join()
        graph.replay()
        assert values[0].item() == 301


@pytest.mark.skipif(no_gpu or torch.cuda.device_count() < 2, reason="fewer than two GPUs here")
def test_a_batch_let_go_while_another_gpu_is_current_waits_for_the_work_on_it(corpus):
    with on_gpu(corpus, pipeline_buffer_size=2, auto_tune_performance=False) as loader:
        expected = [torch.from_dlpack(batch.mel).double().sum().item() for batch in loader]
    aside, sums = torch.cuda.Stream(DEVICE), []
    with on_gpu(corpus, pipeline_buffer_size=2, auto_tune_performance=False) as loader:
        for batch in loader:
            with torch.cuda.stream(aside):
                mel = torch.from_dlpack(batch.mel)
                torch.cuda._sleep(20_000_000)
                sums.append(mel.double().sum())
            with torch.cuda.device(1):
                assert batch.hash() and torch.cuda.current_device() == 1
                del mel, batch
                assert torch.cuda.current_device() == 1
    torch.cuda.synchronize(DEVICE)
    assert [one.item() for one in sums] == expected


def test_the_current_device_stays_what_it_was(corpus):
    last = torch.cuda.device_count() - 1
    with torch.cuda.device(last), on_gpu(corpus) as loader:
        batch = loader.next()
        del batch
        assert torch.cuda.current_device() == last


def test_the_captured_example_trains(root, corpus, python):
    code = "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = python(code, root / "examples" / "python" / "train_step.py", corpus, "--batch-size", 4, "--device", DEVICE)
    assert "epoch 2: loss" in done.stdout and "0 captures" not in done.stdout


def test_jax_takes_the_arrays_on_the_gpu(corpus):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("no GPU that JAX can use here")
    import myxtts.jax

    with on_gpu(corpus) as loader:
        batch = loader.next()
        made = myxtts.jax.arrays(batch)
        assert made["mel"].unsafe_buffer_pointer() == batch.mel.data_ptr()
        assert (np.asarray(made["mel"]) == torch.from_dlpack(batch.mel).cpu().numpy()).all()
