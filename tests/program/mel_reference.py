"""Every preset again, in float64 NumPy with librosa's filters: the numbers that `mel` must reproduce."""
import dataclasses

import librosa
import numpy as np


@dataclasses.dataclass
class Preset:
    rate: int = 22050
    n_fft: int = 1024
    hop: int = 256
    mels: int = 80
    low: float = 0
    high: float | None = 8000
    htk: bool = False
    norm: str | None = "slaney"
    power: int = 1
    epsilon: float = 0
    padding: str = "centre"
    log: str = "ln"
    floor: float = 1e-5


hifigan = Preset(epsilon=1e-9, padding="hifigan")
replace = dataclasses.replace
PRESETS = {
    "hifigan": hifigan,
    "matcha": hifigan,
    "tacotron2": Preset(),
    "bigvgan_24k": replace(hifigan, rate=24000, mels=100, high=12000),
    "vocos": Preset(rate=24000, mels=100, high=12000, htk=True, norm=None, floor=1e-7),
    "cosyvoice": replace(hifigan, rate=24000, n_fft=1920, hop=480),
    "xtts": Preset(htk=True, power=2),
    "espnet": Preset(low=80, high=7600, log="log10", floor=1e-10),
    "whisper": Preset(rate=16000, n_fft=400, hop=160, power=2, log="log10", floor=1e-10),
    "librosa": Preset(n_fft=2048, hop=512, mels=128, high=None, power=2, padding="zeros", log="none"),
    "torchaudio": Preset(rate=16000, n_fft=400, hop=200, mels=128, high=None, htk=True, norm=None, power=2, log="none"),
    "tf_signal": Preset(high=None, padding="end", log="none"),
}


def tensorflow_filters(p):
    """tf.signal.linear_to_mel_weight_matrix: straight triangles on the mel axis."""
    mel = lambda hz: 1127.0 * np.log1p(hz / 700.0)
    bins = mel(np.linspace(0, p.rate / 2, p.n_fft // 2 + 1))
    edges = np.linspace(mel(p.low), mel(p.rate / 2), p.mels + 2)
    up = (bins[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - bins[None]) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down))


def reference(name, samples):
    p = PRESETS[name]
    x = samples.astype(np.float64)
    if name == "tf_signal":
        rms = np.sqrt(np.mean(x**2))
        x = np.clip(x * (0.1 / rms if rms > 1e-8 else 1), -1, 1)
    length = len(x)
    if p.padding == "end":
        frames = -(-length // p.hop)
        x = np.pad(x, (0, p.n_fft))
    elif p.padding == "hifigan":
        frames = length // p.hop
        x = np.pad(x, (p.n_fft - p.hop) // 2, mode="reflect") if length > 0 else x
    else:
        frames = 1 + length // p.hop
        x = np.pad(x, p.n_fft // 2, mode="reflect" if p.padding == "centre" else "constant")
    if name == "whisper":
        frames -= 1
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(p.n_fft) / p.n_fft)
    spectrum = np.array([np.fft.rfft(window * x[t * p.hop : t * p.hop + p.n_fft]) for t in range(frames)])
    spectrum = spectrum.reshape(frames, p.n_fft // 2 + 1)
    power = spectrum.real**2 + spectrum.imag**2
    if name == "tf_signal":
        filters = tensorflow_filters(p)
    else:
        filters = librosa.filters.mel(
            sr=p.rate, n_fft=p.n_fft, n_mels=p.mels, fmin=p.low, fmax=p.high, htk=p.htk, norm=p.norm, dtype=np.float64
        )
    mel = (power if p.power == 2 else np.sqrt(power + p.epsilon)) @ filters.T
    if p.log == "ln":
        mel = np.log(np.maximum(mel, p.floor))
    elif p.log == "log10":
        mel = np.log10(np.maximum(mel, p.floor))
    if name == "matcha":
        mel = (mel + 5.536622) / 2.116101
    if name == "whisper" and frames:
        mel = (np.maximum(mel, mel.max() - 8) + 4) / 4
    if name == "tf_signal":
        mel = np.log(mel + 1e-6)
        mel = (mel - mel.min()) / (mel.max() - mel.min()) if mel.max() > mel.min() else mel * 0
    return mel
