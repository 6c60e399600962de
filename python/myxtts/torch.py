"""For PyTorch: batches as tensors that lie in the loader's memory, and a data set that needs no workers."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch

from ._core import Batch, device_count
from ._error import Error
from ._loader import Loader

__all__ = ["Dataset", "dataset", "tensors"]


def tensors(batch: Batch) -> dict[str, torch.Tensor]:
    """The arrays of a batch by name, without a copy, for the current stream. While one lives, so does the batch."""
    return {name: torch.from_dlpack(array) for name, array in batch.items()}


class Dataset(torch.utils.data.IterableDataset):
    """Whole batches as dictionaries of tensors. A DataLoader takes it with batch_size=None and no workers."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if torch.utils.data.get_worker_info() is not None:
            raise Error("a worker process asks for batches", "invalid_input", "dataset", "set num_workers=0: the loader has threads")
        return map(tensors, self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch is."""
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues where the state was taken."""
        self.loader.load_state_dict(state)


def dataset(path: str | os.PathLike[str], **keywords: Any) -> Dataset:
    """A data set over `Loader(path, **keywords)`. Under torch.distributed, unless they are given, rank and world size are
    its own and the device is torch's current one."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        keywords.setdefault("rank", torch.distributed.get_rank())
        keywords.setdefault("world_size", torch.distributed.get_world_size())
        if torch.cuda.is_available() and device_count() > 0:
            keywords.setdefault("device", f"cuda:{torch.cuda.current_device()}")
    return Dataset(Loader(path, **keywords))
