"""Why does the training loop wait? For any loader."""
from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _core
from ._error import Error
from ._loader import Loader
from ._prepare import framed

WARM_UP = 3  # batches taken first and not counted
KEPT = 4  # batches consumed again at the end, so that data cost nothing


class Diagnosis(dict):
    """A verdict, with the keys of `myxtts diagnose bottleneck --json`; printed as the command prints it."""

    def __init__(self, found: dict[str, Any], text: str, html: str) -> None:
        super().__init__(found)
        self._text = text
        self.html = html

    @property
    def verdict(self) -> str:
        """What limits, in one sentence."""
        return self["verdict"]

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to repair."""
        return self["healthy"]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return framed(self.html)


def diagnose(
    iterable: Iterable[Any],
    step: Callable[[Any], Any] | None = None,
    *,
    batches: int = 50,
    quiet: bool = False,
) -> Diagnosis:
    """Takes batches from any loader, gives each to `step`, and finds what limits: the loader or the step.

    iterable: a Loader, a PyTorch DataLoader, a tf.data set, a generator: whatever a for loop takes. If it ends it is
        begun again. Of a `myxtts.Loader` every stage is judged, of others how long they are waited for.
    step: a training step, called with a batch. Work that it has left on a GPU is waited for, for torch and JAX. Without
        one nothing is done with the batches.
    batches: how many to look at, at least 8, after 3 that warm up. Then a few of the first are consumed again: a step
        that no longer waits shows how fast training would be if data cost nothing.
    quiet: do not print the verdict.
    """
    if batches < 8:
        raise Error(f"batches is {batches}", "invalid_input", "diagnose", "a verdict needs at least 8")
    own = iterable if isinstance(iterable, Loader) else None
    observer = _core.LoopObserver(own and own._feeder, getattr(iterable, "num_workers", None))
    source = _endless(iterable)
    keep, kept = (_places(own) if own else KEPT), []
    for number in range(WARM_UP + batches):
        if number == WARM_UP:
            observer.begin()
        observer.ask()
        batch = next(source)
        observer.take(batch if own else None)
        _consume(step, batch)
        observer.done()
        if number < keep:
            kept.append(batch)
        del batch
    observer.end()
    for batch in kept if step else ():
        start = time.perf_counter()
        _consume(step, batch)
        observer.replayed(batch.shape if own else 0, 1e3 * (time.perf_counter() - start))
    subject = type(iterable).__name__
    consumer = getattr(step, "__name__", type(step).__name__) if step else "nothing: each batch is taken at once"
    found, text, html = observer.finish(subject, consumer)
    diagnosis = Diagnosis(json.loads(found), text, html)
    if not quiet:
        print(diagnosis)
    return diagnosis


def _places(loader: Loader) -> int:
    """How many batches may be kept: they hold places of the ring, of which a GPU may have as few as four."""
    return 2 if loader.stats()["ring_batches"] >= 8 else 1


def _endless(iterable: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in iterable:
            empty = False
            yield batch
            del batch  # so that nothing holds it while the next one is waited for
        if empty:
            raise Error("the loader has no batches left", "invalid_input", "diagnose", "give one that can be iterated again")


def _consume(step: Callable[[Any], Any] | None, batch: Any) -> None:
    """Returns when the step is done, also on a GPU."""
    if step is None:
        return
    result = step(batch)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if "jax" in sys.modules:
        sys.modules["jax"].block_until_ready(result)
