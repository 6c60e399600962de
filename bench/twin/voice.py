"""The voice of src/model/ in PyTorch: the same mathematics, the same names and shapes of weights, so that either loads
the other's. It checks the C++ (tests/program/test_parity.py) and is its baseline (bench/step_peers.py).

Written as a PyTorch user would for speed: fused rms norm, queries and keys rotated together, rotary tables made once,
gathers instead of products with ones and zeros."""
import dataclasses
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HEAD_WIDTH = 64
ENCODER_FACTOR = DECODER_FACTOR = 4
TIME_FEATURES = 256
ENCODER_KERNEL, DECODER_KERNEL, DURATION_KERNEL, DURATION_LAYERS = 5, 7, 3, 2
DURATION_DROPOUT, MAX_DURATION_DROPOUT = 5, 0.5  # times the rate of the rest, and its limit
# First dropout site of each part; a stack has two per block.
EMBEDDING_SITE, DURATION_SITE, ENCODER_SITE, DECODER_SITE, REFERENCE_SITE = 0, 100, 1000, 2000, 3000
CONDITION_WIDTH, REFERENCE_WINDOW, REFERENCE_FACTOR = 256, 7, 8
MIN_SIGMA = 1e-4  # noise that is left at the flow's end


@dataclasses.dataclass(frozen=True)
class Size:
    encoder_blocks: int
    encoder_width: int
    decoder_blocks: int
    decoder_width: int


SIZES = {
    "tiny": Size(3, 192, 6, 256),
    "small": Size(4, 256, 8, 384),
    "normal": Size(4, 512, 12, 512),
    "big": Size(6, 640, 16, 768),
}


def normal(*shape, std):
    return nn.Parameter(torch.randn(shape) * std)


def linear(inputs, outputs, zero=False, bias=True):
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(layer.weight, 0, 0 if zero else inputs**-0.5)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def rms_norm(x, weight=None):
    return F.rms_norm(x, x.shape[-1:], weight, eps=1e-6)


def modulate(x, scale, shift):
    return rms_norm(x) * (1 + scale) + shift


def computing_type(weight):
    """What products with this weight are computed in."""
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype


class Rotary(nn.Module):
    def __init__(self, longest):
        super().__init__()
        rates = torch.exp(torch.arange(HEAD_WIDTH // 2) * (-math.log(10000.0) * 2 / HEAD_WIDTH))
        angles = torch.arange(longest, dtype=torch.float32).unsqueeze(1) * rates
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def forward(self, positions, dtype):
        if positions > self.cosines.shape[0]:
            raise ValueError(f"{positions} positions, but the rotary tables have {self.cosines.shape[0]}")
        return self.cosines[:positions].to(dtype), self.sines[:positions].to(dtype)


def rotate(x, cosines, sines):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)


def philox(counter, key):
    """Philox 4x32 with seven rounds over int64 tensors that hold 32-bit words: src/model/dropout.h."""
    word = 0xFFFFFFFF
    c0, c1, c2, c3 = counter
    k0, k1 = key & word, (key >> 32) & word

    def product(a, b):  # high and low word of a 64-bit product, without overflow
        low = (a & 0xFFFF) * b
        high = (a >> 16) * b + (low >> 16)
        return (high >> 16) & word, ((high << 16) | (low & 0xFFFF)) & word

    for _ in range(7):
        high0, low0 = product(c0, 0xD2511F53)
        high2, low2 = product(c2, 0xCD9E8D57)
        c0, c1, c2, c3 = high2 ^ c1 ^ k0, low2, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & word, (k1 + 0xBB67AE85) & word
    return c0, c1, c2, c3


def stronger(rate, times):
    return rate if times == 1 else min(times * rate, MAX_DURATION_DROPOUT)


@dataclasses.dataclass(frozen=True)
class Dropout:
    """A rate, and the key of a step: an int64 scalar."""

    rate: float
    key: torch.Tensor

    def __call__(self, x, site, times=1):
        rate = stronger(self.rate, times)
        rows, positions, width = x.shape
        at = [torch.arange(n, device=x.device) for n in (rows, positions, width // 8)]
        row, position, group = torch.meshgrid(*at, indexing="ij")
        words = philox((group, position, row, torch.full_like(row, site)), self.key)
        draws = torch.stack([half for word in words for half in (word & 0xFFFF, word >> 16)], -1).flatten(2)
        return x * ((draws >= round(rate * 65536)).to(x.dtype) / (1 - rate))


def no_dropout(x, site, times=1):
    return x


def unfold(x, inside, kernel):
    """Neighbouring positions side by side, zeros outside of a row."""
    padded = F.pad(x * inside.unsqueeze(-1).to(x.dtype), (0, 0, kernel // 2, kernel // 2))
    return torch.cat([padded[:, tap : tap + x.shape[1]] for tap in range(kernel)], -1)


class Attention(nn.Module):
    def __init__(self, width, normed):
        super().__init__()
        self.register_parameter("norm", nn.Parameter(torch.ones(width)) if normed else None)
        self.register_parameter("in", normal(3 * width, width, std=width**-0.5))
        self.register_parameter("out", normal(width, width, std=width**-0.5 / 2))

    def forward(self, x, rotary, keys):
        heads = F.linear(x, getattr(self, "in")).unflatten(-1, (3, -1, HEAD_WIDTH)).permute(2, 0, 3, 1, 4)
        queries_keys, values = rotate(heads[:2], *rotary), heads[2]
        attended = F.scaled_dot_product_attention(queries_keys[0], queries_keys[1], values, keys)
        return F.linear(attended.transpose(1, 2).flatten(2), self.out)


class FeedForward(nn.Module):
    """Its first layer is a convolution in the encoder; in the decoder a depthwise one comes first."""

    def __init__(self, width, normed, kernel=1, factor=None):
        super().__init__()
        inner, self.kernel = (factor or (ENCODER_FACTOR, DECODER_FACTOR)[not normed]) * width, kernel
        self.register_parameter("norm", nn.Parameter(torch.ones(width)) if normed else None)
        self.register_parameter("in", normal(inner, self.kernel * width, std=(self.kernel * width) ** -0.5))
        self.register_parameter("out", normal(width, inner, std=inner**-0.5 / 2))
        self.register_parameter("depthwise", nn.Parameter(torch.zeros(DECODER_KERNEL, width)) if not normed else None)

    def forward(self, x, inside):
        if self.depthwise is not None:
            neighbours = unfold(x, inside, DECODER_KERNEL).unflatten(-1, (DECODER_KERNEL, -1))
            x = x + (neighbours * self.depthwise).sum(-2)
        x = x if self.kernel == 1 else unfold(x, inside, self.kernel)
        return F.linear(F.gelu(F.linear(x, getattr(self, "in")), approximate="tanh"), self.out)


class EncoderBlock(nn.Module):
    def __init__(self, width, kernel=1):
        super().__init__()
        self.attention = Attention(width, normed=True)
        self.feed = FeedForward(width, normed=True, kernel=kernel)

    def forward(self, x, rotary, keys, inside, drop, site):
        x = x + drop(self.attention(rms_norm(x, self.attention.norm), rotary, keys), site)
        return x + drop(self.feed(rms_norm(x, self.feed.norm), inside), site + 1)


class DecoderBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention(width, normed=False)
        self.feed = FeedForward(width, normed=False)
        self.modulation = nn.Parameter(torch.zeros(6, width))

    def forward(self, x, shared, rotary, keys, inside, drop, site):
        m = (shared + self.modulation).split(1, 1)
        x = x + m[2] * drop(self.attention(modulate(x, m[0], m[1]), rotary, keys), site)
        return x + m[5] * drop(self.feed(modulate(x, m[3], m[4]), inside), site + 1)


class TwoLayers(nn.Module):
    def __init__(self, inputs, width, outputs):
        super().__init__()
        self.add_module("in", linear(inputs, width))
        self.out = linear(width, outputs)

    def forward(self, x):
        return self.out(F.silu(getattr(self, "in")(x)))


class DurationLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = normal(width, DURATION_KERNEL * width, std=(DURATION_KERNEL * width) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(width))
        self.norm = nn.Parameter(torch.ones(width))

    def forward(self, x, inside):
        return rms_norm(F.silu(F.linear(unfold(x, inside, DURATION_KERNEL), self.weight, self.bias)), self.norm)


class Table(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = normal(rows, CONDITION_WIDTH, std=1)

    def forward(self, numbers):
        """Rows of length one in root mean square; -1: zeros."""
        return rms_norm(F.embedding(numbers.clamp_min(0), self.table) * (numbers >= 0).unsqueeze(-1))


class Reference(nn.Module):
    """A speaker's vector from a stretch of mel."""

    def __init__(self, n_mels):
        super().__init__()
        self.add_module("in", linear(REFERENCE_WINDOW * n_mels, CONDITION_WIDTH, bias=False))
        self.feed = FeedForward(CONDITION_WIDTH, normed=True, factor=REFERENCE_FACTOR)
        self.norm = nn.Parameter(torch.ones(CONDITION_WIDTH))

    def forward(self, mel, inside, drop):
        x = getattr(self, "in")(mel.unfold(1, REFERENCE_WINDOW, 1).flatten(2))
        x = x + drop(self.feed(rms_norm(x, self.feed.norm), inside), REFERENCE_SITE + 1)
        x = rms_norm(x, self.norm) * inside.unsqueeze(-1)
        return rms_norm(x.sum(1))


class Durations(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(DurationLayer(width) for _ in range(DURATION_LAYERS))
        self.out = linear(width, 1)

    def forward(self, x, inside, drop, condition=None):
        if condition is not None:
            x = x + condition.unsqueeze(1)
        for i, layer in enumerate(self.layers):
            x = drop(layer(x, inside), DURATION_SITE + i, DURATION_DROPOUT)
        return self.out(x).squeeze(-1).float()


class Encoder(nn.Module):
    def __init__(self, vocabulary, blocks, width, n_mels):
        super().__init__()
        self.embedding = normal(vocabulary, width, std=1)
        self.blocks = nn.ModuleList(EncoderBlock(width, ENCODER_KERNEL) for _ in range(blocks))
        self.norm = nn.Parameter(torch.ones(width))
        self.mu = linear(width, n_mels)

    def forward(self, tokens, rotary, keys, inside, drop, condition=None):
        x = drop(F.embedding(tokens, self.embedding), EMBEDDING_SITE)
        if condition is not None:
            x = x + condition.unsqueeze(1)
        for i, block in enumerate(self.blocks):
            x = block(x, rotary, keys, inside, drop, ENCODER_SITE + 2 * i)
        x = rms_norm(x, self.norm)
        return x, self.mu(x).float()


class Decoder(nn.Module):
    def __init__(self, blocks, width, n_mels):
        super().__init__()
        self.add_module("in", linear(2 * n_mels, width))
        self.time = TwoLayers(TIME_FEATURES, width, width)
        self.modulation = linear(width, 6 * width, zero=True)
        self.blocks = nn.ModuleList(DecoderBlock(width) for _ in range(blocks))
        self.final = nn.ModuleDict({"modulation": linear(width, 2 * width, zero=True)})
        self.out = linear(width, n_mels, zero=True)

    def forward(self, x, mu, time, rotary, keys, inside, drop, condition=None):
        dtype = self.out.weight.dtype
        moment = self.time(time_waves(time).to(dtype))
        moment = F.silu(moment if condition is None else moment + condition)
        shared = self.modulation(moment).unflatten(-1, (6, -1))
        h = getattr(self, "in")(torch.cat((x, mu), -1).to(dtype))
        for i, block in enumerate(self.blocks):
            h = block(h, shared, rotary, keys, inside, drop, DECODER_SITE + 2 * i)
        scale, shift = self.final["modulation"](moment).unflatten(-1, (2, -1)).split(1, 1)
        return self.out(modulate(h, scale, shift)).float()


def time_waves(time):
    half = TIME_FEATURES // 2
    rates = torch.exp(torch.arange(half, device=time.device) * (-math.log(10000.0) * 2 / TIME_FEATURES))
    angles = 1000 * time.unsqueeze(1) * rates
    return torch.cat((angles.sin(), angles.cos()), 1)


@torch.compiler.disable
@torch.no_grad()
def align_frames(mel, mu, text_lengths, mel_lengths):
    """The best monotonic alignment, exactly as src/model/alignment.h says, on the CPU: int32 [rows, frames], -1 behind
    the end. Vectorised over rows and tokens."""
    with torch.autocast("cpu", enabled=False):
        mel, mu = mel.cpu().float(), mu.cpu().float()
        scores = torch.baddbmm(mu.square().sum(-1).unsqueeze(1), mel, mu.transpose(1, 2), beta=-0.5).numpy()
    tokens, frames = text_lengths.cpu().numpy(), mel_lengths.cpu().numpy()
    rows, longest, widest = scores.shape
    never = np.float32(-1e32)
    best = np.full((rows, widest + 1), never)  # one in front: there is no token before the first
    best[:, 1] = scores[:, 0, 0]
    moved = np.zeros((longest, rows, widest), bool)
    for frame in range(1, longest):
        before, stayed = best[:, :-1], best[:, 1:]
        moved[frame] = before > stayed
        best[:, 1:] = np.maximum(before, stayed) + scores[:, frame]

    result = np.full((rows, longest), -1, np.int32)
    row = np.arange(rows)
    aligned = (tokens > 0) & (frames >= tokens)
    token = np.maximum(tokens - 1, 0)
    for frame in range(longest - 1, -1, -1):
        inside = aligned & (frame < frames)
        result[inside, frame] = token[inside]
        token = token - (inside & moved[frame, row, token])
    return torch.from_numpy(result).to(text_lengths.device)


class Voice(nn.Module):
    """`key_mask=False` lets attention see padding: right only if every row is full, and faster, because a mask keeps
    attention off the flash kernel. With `speakers` the voice is conditioned on speaker, language and reference."""

    def __init__(self, size, vocabulary, n_mels, mel_mean, mel_std, key_mask=True, longest=4096, speakers=0, languages=0):
        super().__init__()
        if isinstance(size, str):
            size = SIZES[size]
        self.size, self.n_mels, self.mel_mean, self.mel_std, self.key_mask = size, n_mels, mel_mean, mel_std, key_mask
        self.rotary = Rotary(longest)
        self.encoder = Encoder(vocabulary, size.encoder_blocks, size.encoder_width, n_mels)
        self.duration = Durations(size.encoder_width)
        self.decoder = Decoder(size.decoder_blocks, size.decoder_width, n_mels)
        self.conditioned = speakers > 0
        if self.conditioned:
            self.speakers, self.languages, self.reference = Table(speakers), Table(languages), Reference(n_mels)
            self.widths = (size.encoder_width, size.encoder_width, size.decoder_width)
            self.condition = nn.Linear(CONDITION_WIDTH, sum(self.widths), bias=False)

    def conditions(self, given, dtype, dropout):
        """What is added in encoder, duration predictor and decoder. `given`: speaker, language and kept of all rows,
        reference and reference_lengths of the first ones, condition_dropout."""
        mel = (given["reference"] - self.mel_mean) / self.mel_std
        windows = given["reference_lengths"] - (REFERENCE_WINDOW - 1)
        inside = torch.arange(mel.shape[1] - (REFERENCE_WINDOW - 1), device=mel.device) < windows.unsqueeze(1)
        heard = self.reference(mel.to(dtype), inside, dropout)
        known, count = self.speakers(given["speaker"]), len(heard)
        first = torch.where((windows > 0).unsqueeze(1), heard, known[:count])
        speaker = torch.cat((first, known[count:]))
        kept = (given["kept"] >= given.get("condition_dropout", 0)).unsqueeze(1)
        return self.condition((speaker + self.languages(given["language"])) * kept).split(self.widths, 1)

    def keys(self, valid):
        if not self.key_mask:
            return None
        # An empty row sees its padding, so that no softmax is over nothing.
        return (valid | ~valid.any(1, keepdim=True))[:, None, None, :]

    def losses(self, tokens, text_lengths, mel_lengths, mel, time, noise, align="search", token_of_frame=None, dropout=no_dropout, **given):
        """align="search" finds the alignment on the CPU; "given" takes token_of_frame. Losses are float scalars."""
        if (align == "given") != (token_of_frame is not None):
            raise ValueError("token_of_frame comes with align='given', and with it alone")
        mel = (mel - self.mel_mean) / self.mel_std
        valid_frame = torch.arange(mel.shape[1], device=mel.device) < mel_lengths.unsqueeze(1)
        valid_token = torch.arange(tokens.shape[1], device=mel.device) < text_lengths.unsqueeze(1)
        valid_values = (mel_lengths.sum() * self.n_mels).clamp_min(1)
        dtype = computing_type(self.encoder.embedding)

        condition = self.conditions(given, dtype, dropout) if self.conditioned else (None, None, None)
        encoded, mu = self.encoder(tokens, self.rotary(tokens.shape[1], dtype), self.keys(valid_token), valid_token, dropout, condition[0])
        log_durations = self.duration(encoded.detach(), valid_token, dropout, condition[1])
        if align == "search":
            token_of_frame = align_frames(mel, mu.detach(), text_lengths, mel_lengths)

        aligned = token_of_frame >= 0
        index = token_of_frame.clamp_min(0).long()
        frame_mu = mu.gather(1, index.unsqueeze(-1).expand(-1, -1, self.n_mels)) * aligned.unsqueeze(-1)
        frames_of_token = torch.zeros_like(log_durations).scatter_add(1, index, aligned.float())

        def mean_valid(values):
            return torch.where(valid_frame.unsqueeze(-1), values, 0.0).sum() / valid_values

        prior = mean_valid(0.5 * ((mel - frame_mu).square() + math.log(2 * math.pi)))
        missed = (log_durations - frames_of_token.clamp_min(1).log()).square()
        duration = torch.where(valid_token, missed, 0.0).sum() / text_lengths.sum().clamp_min(1)

        t = time.view(-1, 1, 1)
        x = (1 - (1 - MIN_SIGMA) * t) * noise + t * mel
        target = mel - (1 - MIN_SIGMA) * noise
        flow = self.decoder(x, frame_mu, time, self.rotary(mel.shape[1], dtype), self.keys(valid_frame), valid_frame, dropout, condition[2])
        flow = mean_valid((flow - target).square())
        return {"total": prior + duration + flow, "prior": prior, "duration": duration, "flow": flow, "token_of_frame": token_of_frame}

    forward = losses


def step_flops(size, rows, frames, tokens, n_mels=80):
    """Matrix products and attention of one step over full rows; backward is twice forward. Nothing else is counted."""
    size = SIZES[size] if isinstance(size, str) else size

    def trunk(blocks, width, positions, factor, kernel):
        products = 2 * positions * (4 + (1 + kernel) * factor) * width**2
        return blocks * (products + 4 * positions**2 * width)

    e, d = size.encoder_width, size.decoder_width
    forward = trunk(size.encoder_blocks, e, tokens, ENCODER_FACTOR, ENCODER_KERNEL)
    forward += 2 * tokens * (e * n_mels + DURATION_LAYERS * DURATION_KERNEL * e * e + e)
    forward += trunk(size.decoder_blocks, d, frames, DECODER_FACTOR, 1) + 2 * frames * (2 * n_mels * d + d * n_mels)
    forward += 2 * (TIME_FEATURES * d + d * d + 8 * d * d)
    return 3 * rows * forward
