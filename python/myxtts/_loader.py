"""A corpus as batches that are ready when they are asked for."""
from __future__ import annotations

import atexit
import functools
import json
import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from . import _core
from ._error import Error
from ._settings import path_text, texts

VOICE_ARRAYS = ("tokens", "mel", "text_lengths", "mel_lengths")


class Loader:
    """Reads, decodes and transforms the clips of coming batches on threads of its own.

    A loop over it takes the rest of the epoch; the next loop takes the next one. What is in a batch follows from
    seed, epoch, index, settings and corpus alone. Batches are held by reference: see `Batch`.

    path: a folder with metadata.csv and wavs/, a .jsonl manifest, or packed shards, as `myxtts prepare` takes it.
    batch_size: clips per batch, of all ranks together (16).
    preset: the log-mel convention, one of `presets()` ("hifigan").
    shapes: at most so many static shapes (12); 1 is one fixed shape.
    arrays: what a batch holds, of `array_names()`. With "samples" rows are crops, as a vocoder is trained on.
    device: "cpu", "cuda:N", or None for the first GPU, else the CPU.
    workers: threads that read and decode (chosen by the machine).
    seed: of the order of the clips (1).
    rank, world_size: the share of a batch that this process gets.
    validation: the clips held out, each once, instead of those to train on.
    config: a YAML file of settings; keywords beat it.
    settings: any other setting of the corpus, the mel or the loader by its key, such as
        pipeline_buffer_size=100, language="fa", trim_silence=True or n_mels=100.

    Any thread may take batches. It refuses to work in a process that was forked from its own.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        batch_size: int | str | None = None,
        preset: str | None = None,
        shapes: int | None = None,
        arrays: Sequence[str] = VOICE_ARRAYS,
        device: str | None = None,
        workers: int | str | None = None,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        validation: bool = False,
        config: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        named = {"train_data": path, "batch_size": batch_size, "mel_preset": preset, "shape_buckets": shapes}
        named |= {"device": "cuda:0" if device == "cuda" else device, "num_workers": workers, "seed": seed}
        for key in named.keys() & settings.keys():
            raise TypeError(f"Loader() has a keyword of its own for {key}")
        if isinstance(arrays, str):
            raise TypeError("arrays is a list of names, such as ('tokens', 'mel')")
        if rank < 0 or world_size < 1:
            raise ValueError(f"rank {rank} of {world_size}: rank is at least 0, world_size at least 1")
        # Set by torchrun and Lightning: so many processes share the machine's cores and memory.
        processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if world_size > 1 else 1
        self._feeder = _core.open_feeder(
            path_text(config), texts(named | settings), list(arrays), validation, rank, world_size, processes
        )

    def __iter__(self) -> Iterator[_core.Batch]:
        """The rest of the epoch. A loop that was left is continued by the next one."""
        return iter(functools.partial(self._feeder.next, self.epoch), None)

    def next(self) -> _core.Batch:
        """The next batch, of whichever epoch; waits until it is ready. Ctrl-C ends the wait."""
        return self._feeder.next()

    def __len__(self) -> int:
        """Batches per epoch."""
        return self._feeder.batches_per_epoch

    @property
    def epoch(self) -> int:
        """Epoch of the next batch, from 0."""
        return self._feeder.position[0]

    @property
    def index(self) -> int:
        """Number of the next batch in its epoch, from 0."""
        return self._feeder.position[1]

    @property
    def shapes(self) -> list[dict[str, int]]:
        """Every shape that a batch can have: batch_size, text and mel. `Batch.shape` is a number in this list."""
        return self._feeder.shapes

    @property
    def speakers(self) -> list[str]:
        """Names of the speakers, by the numbers in the array "speaker"."""
        return self._feeder.speakers

    @property
    def languages(self) -> list[str]:
        """Names of the languages, by the numbers in the array "language"."""
        return self._feeder.languages

    @property
    def symbols(self) -> list[str]:
        """Characters or phonemes; the first one is token 2. Token 0 is padding, 1 the blank between tokens."""
        return json.loads(self._feeder.vocabulary_json)["symbols"]

    @property
    def vocabulary_size(self) -> int:
        """Number of different tokens, padding and blank included."""
        return self._feeder.vocabulary_size

    @property
    def sample_rate(self) -> int:
        """Sample rate that clips are brought to, in Hz."""
        return self._feeder.sample_rate

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What was chosen: mode, buffer, static shapes, workers, and what was tuned automatically."""
        return self._feeder.facts

    def stats(self) -> dict[str, float]:
        """Counts and waiting times so far."""
        return self._feeder.stats()

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch is. It can be loaded with another number of workers or ranks."""
        epoch, index = self._feeder.position
        return {"version": 1, "epoch": epoch, "index": index, "plan": self._plan}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues where the state was taken, with the same batches to the last bit."""
        if state.get("version") != 1:
            raise _error("the state is not of this version of the package")
        if state["plan"] != self._plan:
            raise _error("the state belongs to another corpus, seed, batch size or mel, or to other shapes or arrays",
                         "open the loader with the same ones")
        self._feeder.seek(state["epoch"], state["index"])

    @functools.cached_property
    def _plan(self) -> str:
        return self._feeder.plan_hash

    def close(self) -> None:
        """Ends its threads. Batches that are held stay as they are."""
        self._feeder.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Loader({', '.join(f'{name}: {text}' for name, text in self.facts)})"

    def __reduce__(self) -> Any:
        raise TypeError("a Loader cannot be sent to another process; open one there")


def _error(message: str, way_out: str = "") -> Error:
    return Error(message, "invalid_input", "loader", way_out)


atexit.register(_core.close_all)
os.register_at_fork(after_in_child=_core.forget_other_threads)
