"""Log-mels of samples in memory, on the CPU or on the GPU where they lie."""
from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from . import _core
from ._settings import path_text, texts


def presets() -> dict[str, dict[str, str]]:
    """The log-mel conventions by name, each with its values."""
    return _core.mel_presets()


def mel(
    samples: Any,
    *,
    sample_rate: int | None = None,
    preset: str = "hifigan",
    config: str | os.PathLike[str] | None = None,
) -> Any:
    """Log-mel of `samples`, the same to the last bit as that of `myxtts mel` on the same device.

    samples: [samples] or [clips, samples] as float32, float64 or int16: a NumPy array, a tensor on the CPU or a GPU,
        or anything with a buffer or DLPack. Clips of a batch have the same length; nothing is padded.
    sample_rate: of the samples; another one than that of the preset is resampled.
    preset: the convention, one of `presets()`, or one of the file `config`.

    Returns [frames, n_mels] or [clips, frames, n_mels], float32, as what was given: a torch tensor for a torch tensor,
    a NumPy array for a NumPy array; a `myxtts.Array` where the giver's library is not known.
    """
    return _compute(_maker(preset, path_text(config)), samples, sample_rate)


class MelSpectrogram:
    """Takes the place of torchaudio.transforms.MelSpectrogram in a data set: waveform in, [..., n_mels, frames] out.

    Its keywords are torchaudio's, with the same defaults; `preset` starts from one of `presets()` instead, which has
    its logarithm too. It holds no threads and can be sent to another process. It is not a torch.nn.Module and has no
    gradient; what it gives is float32, also of float64. Of `pad`, `window_fn`, `normalized`, `wkwargs`, `center` and
    `onesided` it takes torchaudio's defaults alone.
    """

    sample_rate: int  # that it takes, in Hz
    n_fft: int
    win_length: int
    hop_length: int
    n_mels: int

    def __init__(
        self,
        sample_rate: int | None = None,
        n_fft: int | None = None,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float | None = None,
        f_max: float | None = None,
        *,
        n_mels: int | None = None,
        power: float | None = None,
        norm: str | None = None,
        mel_scale: str | None = None,
        pad_mode: str | None = None,
        preset: str | None = None,
        pad: int = 0,
        window_fn: Callable[..., Any] | None = None,
        normalized: bool = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        onesided: bool | None = None,
    ) -> None:
        given = dict(locals())
        for key, (accepted, only) in _FIXED.items():
            if not accepted(given[key]):
                raise ValueError(f"{key} is {given[key]!r}; it may only be {only}")
        self.__setstate__(_as_settings(preset, {key: given[key] for key in _KEYWORDS}))

    def __call__(self, waveform: Any) -> Any:
        """[..., samples] at the transform's rate to [..., n_mels, frames], as what was given."""
        shape = tuple(waveform.shape)
        rows = waveform if len(shape) <= 2 else waveform.reshape(-1, shape[-1])
        made = _compute(self._maker, rows, None)
        turned = made.transpose(-1, -2) if _library(made) == "torch" else made.swapaxes(-1, -2)
        return turned if len(shape) <= 2 else turned.reshape(*shape[:-1], *turned.shape[-2:])

    def __repr__(self) -> str:
        return f"MelSpectrogram({self._maker!r})"

    def __getstate__(self) -> dict[str, str]:
        return self._settings

    def __setstate__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._maker = _core.MelMaker("", settings)
        for name in ("sample_rate", "n_fft", "win_length", "hop_length", "n_mels"):
            setattr(self, name, getattr(self._maker, name))


_KEYWORDS = ("sample_rate", "n_fft", "win_length", "hop_length", "f_min", "f_max", "n_mels", "power", "norm", "mel_scale", "pad_mode")
# torchaudio's keywords that have one value here: whether a value is that one, and its name.
_FIXED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "pad": (lambda value: value == 0, "0"),
    "window_fn": (lambda value: value is None or getattr(value, "__name__", "") == "hann_window", "torch.hann_window"),
    "normalized": (lambda value: value is False, "False"),
    "wkwargs": (lambda value: not value, "None"),
    "center": (lambda value: value is True, "True; other paddings are presets"),
    "onesided": (lambda value: value in (None, True), "True"),
}


def _as_settings(preset: str | None, keywords: dict[str, Any]) -> dict[str, str]:
    """torchaudio's keywords as settings of the mel. Without a preset its defaults hold, some of which follow others."""
    given = {key: value for key, value in keywords.items() if value is not None}
    if "power" in given and given["power"] not in (1, 2):
        raise ValueError(f"power is {given['power']}; it may be 1 or 2")
    if given.get("pad_mode", "reflect") not in ("reflect", "constant"):
        raise ValueError(f"pad_mode is {given['pad_mode']!r}; it may be 'reflect' or 'constant'")
    if preset is None and "n_fft" in given:
        given.setdefault("win_length", given["n_fft"])
    if preset is None and "win_length" in given:
        given.setdefault("hop_length", given["win_length"] // 2)
    if "power" in given:
        given["mel_power"] = int(given.pop("power"))
    if "norm" in given:
        given["mel_norm"] = given.pop("norm")
    if "pad_mode" in given:
        given["mel_padding"] = "centre" if given.pop("pad_mode") == "reflect" else "centre_zeros"
    return texts({"mel_preset": preset or "torchaudio", **given})


@functools.lru_cache(maxsize=16)
def _maker(preset: str, config: str) -> _core.MelMaker:
    return _core.MelMaker(config, {"mel_preset": preset})


def _library(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def _compute(maker: _core.MelMaker, samples: Any, sample_rate: int | None) -> Any:
    library = _library(samples)
    given = samples.detach() if library == "torch" else samples
    if library == "torch" and given.is_cuda:
        given = given.contiguous()
    made = maker.compute(given, maker.sample_rate if sample_rate is None else sample_rate)
    own = getattr(sys.modules.get(library), "asarray" if library == "numpy" else "from_dlpack", None)  # NumPy's may be read-only
    if own is None and hasattr(samples, "__array_namespace__"):
        own = samples.__array_namespace__().from_dlpack
    return made if own is None else own(made)
