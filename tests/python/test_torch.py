import numpy as np
import pytest

import myxtts

torch = pytest.importorskip("torch")


def test_tensors_lie_in_the_ring(corpus):
    import myxtts.torch

    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        batch = loader.next()
        made = myxtts.torch.tensors(batch)
        assert list(made) == batch.keys()
        for name, tensor in made.items():
            assert tensor.data_ptr() == batch[name].data_ptr() and tensor.shape == batch[name].shape
            assert (tensor.numpy() == np.asarray(batch[name])).all()
        assert torch.asarray(batch.mel).data_ptr() == batch.mel.data_ptr()


def test_a_tensor_alone_keeps_its_batch(corpus):
    with myxtts.Loader(corpus, batch_size=2, device="cpu", pipeline_buffer_size=4, auto_tune_performance=False) as loader:
        kept = [torch.from_dlpack(loader.next().mel) for _ in range(4)]
        before = [tensor.clone() for tensor in kept]
        with pytest.raises(myxtts.Error, match="are held"):
            loader.next()
        del kept[3]
        for _ in range(2 * len(loader)):
            loader.next()
        assert all(torch.equal(now, then) for now, then in zip(kept, before, strict=False))


def test_a_data_set_gives_whole_batches_without_workers(corpus):
    import myxtts.torch

    dataset = myxtts.torch.dataset(corpus, batch_size=4, device="cpu")
    expected = [batch.hash() for batch in myxtts.Loader(corpus, batch_size=4, device="cpu")]
    batches = list(torch.utils.data.DataLoader(dataset, batch_size=None))
    assert len(batches) == len(dataset) == len(expected)
    assert batches[0]["mel"].shape[0] == 4 and batches[0]["tokens"].dtype == torch.int32
    assert dataset.state_dict()["epoch"] == 1
    dataset.load_state_dict(dataset.state_dict() | {"epoch": 0})
    assert dataset.loader.next().hash() == expected[0]


def test_a_data_set_in_worker_processes_is_refused(corpus):
    import myxtts.torch

    dataset = myxtts.torch.dataset(corpus, batch_size=4, device="cpu")
    with pytest.raises(myxtts.Error, match="set num_workers=0"):
        list(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1))


def test_under_torch_distributed_a_data_set_is_its_ranks_on_its_device(monkeypatch):
    import myxtts.torch

    for where, name, value in [
        (torch.distributed, "is_initialized", True),
        (torch.distributed, "get_rank", 1),
        (torch.distributed, "get_world_size", 2),
        (torch.cuda, "is_available", True),
        (torch.cuda, "current_device", 3),
        (myxtts.torch, "device_count", 4),
    ]:
        monkeypatch.setattr(where, name, lambda value=value: value)
    monkeypatch.setattr(myxtts.torch, "Loader", lambda path, **keywords: keywords)
    own = {"rank": 1, "world_size": 2, "device": "cuda:3"}
    assert myxtts.torch.dataset("corpus").loader == own
    assert myxtts.torch.dataset("corpus", rank=0, device="cpu").loader == own | {"rank": 0, "device": "cpu"}
    monkeypatch.setattr(myxtts.torch, "device_count", lambda: 0)
    assert "device" not in myxtts.torch.dataset("corpus").loader


def test_jax_takes_the_arrays(corpus):
    pytest.importorskip("jax", reason="JAX is not installed")
    import myxtts.jax

    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        batch = loader.next()
        made = myxtts.jax.arrays(batch)
        assert list(made) == batch.keys()
        assert all((np.asarray(made[name]) == np.asarray(batch[name])).all() for name in made)
        assert made["mel"].unsafe_buffer_pointer() == batch.mel.data_ptr()
        assert sum(len(one["tokens"]) for one in myxtts.jax.batches(loader)) == 4 * (len(loader) - 1)
