"""The vocoder of src/model/ in plain PyTorch: for parity, and for the race. Spectra are FFTs here, matrix products there."""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

from .voice import linear, normal, rms_norm

KERNEL, LOUDEST = 7, 4.6
PERIODS, WINDOWS = (2, 3, 5, 7, 11), (512, 1024, 2048)
SLOPE, SPECTRA_WEIGHT, MEL_WEIGHT = 0.1, 0.1, 45


@dataclasses.dataclass(frozen=True)
class Size:
    blocks: int
    width: int
    hidden: int
    narrower: int = 1  # discriminators


SIZES = {"tiny": Size(4, 192, 576, 4), "base": Size(8, 512, 1536)}


@dataclasses.dataclass(frozen=True)
class Convention:
    """Of a log-mel: filters [bins, n_mels]; `first` is the first sample of the first window."""

    n_fft: int
    hop: int
    first: int
    filters: torch.Tensor
    floor: float = 1e-5


def slaney_filters(sample_rate, n_fft, n_mels):
    """Triangles of equal area over all frequencies, equally far apart on Slaney's mel scale: [bins, n_mels]."""
    top = sample_rate / 2
    linear_mel, log_step = 15.0, math.log(6.4) / 27  # below 1 kHz the scale is linear
    highest = linear_mel + math.log(top / 1000) / log_step
    mels = torch.linspace(0, highest, n_mels + 2, dtype=torch.float64)
    edges = torch.where(mels < linear_mel, mels * 200 / 3, 1000 * torch.exp(log_step * (mels - linear_mel)))
    bins = torch.linspace(0, top, n_fft // 2 + 1, dtype=torch.float64).unsqueeze(1)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    triangles = torch.minimum((bins - left) / (centre - left), (right - bins) / (right - centre)).clamp_min(0)
    return (triangles * 2 / (right - left)).float()


def full_band(sample_rate):
    """The conventions that distances are measured in."""
    return [Convention(n, n // 4, -n // 2, slaney_filters(sample_rate, n, 100 if n >= 1024 else 50)) for n in (512, 1024, 2048)]


def windows(samples, n_fft, hop, first, count):
    """[rows, count, n_fft], mirrored at both ends."""
    after = max(0, first + (count - 1) * hop + n_fft - samples.shape[1])
    padded = F.pad(samples.unsqueeze(1), (-first, after), mode="reflect").squeeze(1)
    return padded.unfold(1, n_fft, hop)[:, :count]


def magnitudes(samples, n_fft, hop, first, count):
    framed = windows(samples, n_fft, hop, first, count) * torch.hann_window(n_fft, device=samples.device)
    spectrum = torch.fft.rfft(framed)
    return (spectrum.real.square() + spectrum.imag.square() + 1e-9).sqrt()


def log_mel(samples, convention):
    c = convention
    count = samples.shape[1] // c.hop + 1
    return (magnitudes(samples, c.n_fft, c.hop, c.first, count) @ c.filters.to(samples.device)).clamp_min(c.floor).log()


def depthwise(x, weight):
    """x + x convolved with one kernel per channel: weight [kernel, width]."""
    taps = weight.t().unsqueeze(1)
    return x + F.conv1d(x.transpose(1, 2), taps, padding=weight.shape[0] // 2, groups=x.shape[2]).transpose(1, 2)


class Feed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_parameter("in", normal(size.hidden, size.width, std=size.width**-0.5))
        self.register_parameter("out", normal(size.width, size.hidden, std=(size.hidden * size.blocks) ** -0.5))

    def forward(self, x):
        return F.linear(F.gelu(F.linear(x, getattr(self, "in")), approximate="tanh"), self.out)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.Parameter(torch.ones(size.width))
        self.depthwise = normal(KERNEL, size.width, std=KERNEL**-0.5)
        self.feed = Feed(size)

    def forward(self, x):
        return x + self.feed(depthwise(rms_norm(x, self.norm), self.depthwise))


class Vocoder(nn.Module):
    def __init__(self, size, n_mels, n_fft, hop, first, mel_mean, mel_std):
        super().__init__()
        size = SIZES[size] if isinstance(size, str) else size
        self.n_fft, self.hop, self.first, self.mel_mean, self.mel_std = n_fft, hop, first, mel_mean, mel_std
        self.add_module("in", linear(KERNEL * n_mels, size.width))
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.blocks))
        self.norm = nn.Parameter(torch.ones(size.width))
        self.head = linear(size.width, n_fft + 2)

    def forward(self, mel, samples):
        mel = (mel - self.mel_mean) / self.mel_std
        frames = mel.shape[1]
        near = F.pad(mel, (0, 0, KERNEL // 2, KERNEL // 2)).unfold(1, KERNEL, 1).transpose(2, 3).flatten(2)
        x = getattr(self, "in")(near)
        for block in self.blocks:
            x = block(x)
        log_magnitude, phase = self.head(rms_norm(x, self.norm)).float().chunk(2, -1)
        window = torch.hann_window(self.n_fft, device=mel.device)
        made = torch.fft.irfft(torch.polar(log_magnitude.clamp_max(LOUDEST).exp(), phase)) * window
        length = (frames - 1) * self.hop + self.n_fft

        def overlapped(parts):
            return F.fold(parts.transpose(1, 2), (1, length), (1, self.n_fft), stride=(1, self.hop)).flatten(1)

        cover = overlapped(window.square().expand(1, frames, -1)).clamp_min(1e-3)
        return (overlapped(made) / cover)[:, -self.first : samples - self.first]


def conv(shape, stride):
    kind = nn.Conv1d if len(shape) == 3 else nn.Conv2d
    return kind(shape[1], shape[0], shape[2:], stride, tuple(k // 2 for k in shape[2:]))


class Discriminator(nn.Module):
    def __init__(self, convs):
        super().__init__()
        for name, layer in convs:
            self.add_module(name, layer)

    def forward(self, x):
        """A score, and the activations on the way there."""
        *layers, last = self.children()
        features = []
        for layer in layers:
            x = F.leaky_relu(layer(x), SLOPE)
            features.append(x)
        return last(x).float(), features


def by_period(narrower):
    channels = (1, *(widest // narrower for widest in (32, 128, 512, 1024)))
    convs = [(str(i), conv((channels[i + 1], channels[i], 5), (3,))) for i in range(4)]
    return Discriminator([*convs, ("4", conv((channels[4], channels[4], 5), (1,))), ("out", conv((1, channels[4], 3), (1,)))])


def by_spectrum(narrower):
    width = 32 // narrower
    convs = [("0", conv((width, 1, 3, 9), (1, 1)))] + [(str(i), conv((width, width, 3, 9), (1, 2))) for i in (1, 2, 3)]
    return Discriminator([*convs, ("4", conv((width, width, 3, 3), (1, 1))), ("out", conv((1, width, 3, 3), (1, 1)))])


class Discriminators(nn.Module):
    def __init__(self, narrower=1):
        super().__init__()
        self.period = nn.ModuleDict({str(period): by_period(narrower) for period in PERIODS})
        self.spectrum = nn.ModuleDict({str(window): by_spectrum(narrower) for window in WINDOWS})

    def forward(self, samples):
        rows, length = samples.shape
        judgements = []
        for period in PERIODS:
            folds = length // period
            folded = samples[:, : folds * period].view(rows, folds, period).transpose(1, 2).reshape(-1, 1, folds)
            judgements.append(self.period[str(period)](folded))
        for window in WINDOWS:
            hop = window // 4
            judgements.append(self.spectrum[str(window)](magnitudes(samples, window, hop, -window // 2, length // hop + 1).unsqueeze(1)))
        return judgements


def weighted(values):
    count = len(PERIODS)
    return sum(values[:count]) / count + SPECTRA_WEIGHT * sum(values[count:]) / len(WINDOWS)


def discriminator_loss(real, made):
    return weighted([F.relu(1 - r).mean() + F.relu(1 + m).mean() for (r, _), (m, _) in zip(real, made)])


def mel_distance(made, samples, valid, conventions):
    """Over the rows that are `valid`, a float of 0 or 1 each."""
    apart = sum((log_mel(made, c) - log_mel(samples, c)).abs().mean((1, 2)) for c in conventions) / len(conventions)
    return (apart * valid).sum() / valid.sum().clamp_min(1)


def generator_losses(made, samples, valid, of_real, of_made, conventions):
    mel = mel_distance(made, samples, valid, conventions)
    adversarial = weighted([F.relu(1 - score).mean() for score, _ in of_made])
    features = weighted([sum((r.float() - m.float()).abs().mean() for r, m in zip(a, b)) for (_, a), (_, b) in zip(of_real, of_made)])
    return {"loss": MEL_WEIGHT * mel + adversarial + features, "loss_mel": mel, "loss_adversarial": adversarial, "loss_features": features}
