"""For JAX: batches as arrays that lie in the loader's memory."""
from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.dlpack

from ._core import Batch
from ._loader import Loader

__all__ = ["arrays", "batches"]


def arrays(batch: Batch) -> dict[str, jax.Array]:
    """The arrays of a batch by name, without a copy where JAX can. While one lives, so does the batch."""
    return {name: jax.dlpack.from_dlpack(array) for name, array in batch.items()}


def batches(loader: Loader) -> Iterator[dict[str, jax.Array]]:
    """The rest of the loader's epoch, each batch as a dictionary of arrays."""
    return map(arrays, loader)
