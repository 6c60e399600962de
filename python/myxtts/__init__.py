"""The loader, the log-mels and the bottleneck diagnosis of MyXTTS, for anyone's training loop.

    import myxtts, torch

    with myxtts.Loader("corpus", batch_size=16, device="cuda:0") as loader:
        for batch in loader:                       # one epoch; loop again for the next
            mel = torch.from_dlpack(batch.mel)     # no copy: [16, frames, 80] in a static shape
            ...

Nothing here needs torch. ``myxtts.torch`` and ``myxtts.jax`` are imported by who wants them.
"""
from ._core import Array, Batch, __version__, array_names, device_count
from ._diagnose import Diagnosis, diagnose
from ._error import Error
from ._loader import Loader
from ._mel import MelSpectrogram, mel, presets
from ._prepare import PrepareReport, prepare

__all__ = [
    "Array",
    "Batch",
    "Diagnosis",
    "Error",
    "Loader",
    "MelSpectrogram",
    "PrepareReport",
    "__version__",
    "array_names",
    "device_count",
    "diagnose",
    "mel",
    "prepare",
    "presets",
]
