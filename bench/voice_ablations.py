#!/usr/bin/env python3
"""Which parts of the acoustic model make a voice that generalises: variants of it in PyTorch, trained on one small corpus.

    bench/voice_data.py SPLIT DATA.npz
    bench/voice_ablations.py DATA.npz --variants base,dropout,... --updates 8000 --out FOLDER
    bench/voice_ablations.py --list

Each variant writes FOLDER/NAME.npz with the log-mel of every held-out text (float16, by clip) and FOLDER/NAME.json with
its losses over training. `bench/voice_eval.py --mels NAME=FOLDER/NAME.npz` judges them. On a GPU a step is captured in a CUDA graph per
shape and the alignment search is the project's kernel, compiled by nvcc from src/model/cuda."""
import argparse
import ctypes
import dataclasses
import json
import math
import pathlib
import subprocess
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = 64
SIGMA_MIN = 1e-4


@dataclasses.dataclass(frozen=True)
class Variant:
    unit: str = "characters"  # or phonemes, punctuated
    blanks: bool = False
    encoder_blocks: int = 4
    encoder_width: int = 256
    decoder_blocks: int = 8
    decoder_width: int = 384
    dropout: float = 0.0  # of embeddings, branches and hidden layers
    decoder_dropout: float = -1.0  # -1: as dropout
    prenet: int = 0  # convolutions before the encoder's blocks
    prenet_dropout: float = -1.0
    encoder_kernel: int = 1  # of the encoder's first feed-forward layer
    encoder_out_kernel: int = 1  # and of its second
    encoder_factor: int = 4
    encoder_depthwise: int = 0  # kernel before the encoder's feed-forwards
    decoder_depthwise: int = 0
    decoder_kernel: int = 1
    decoder_factor: int = 4
    duration_convs: int = 0  # with a kernel of 3
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    batch_size: int = 16


base = Variant()
dropout = dataclasses.replace(base, dropout=0.1)
convs = dataclasses.replace(dropout, prenet=3, encoder_kernel=5, duration_convs=2)
both = dataclasses.replace(convs, decoder_depthwise=7)
phonemes = dataclasses.replace(both, unit="phonemes")
punctuated = dataclasses.replace(both, unit="punctuated")
chosen = dataclasses.replace(punctuated, blanks=True)
VARIANTS = {
    "base": base,
    "dropout": dropout,
    "encoder_convs": convs,
    "decoder_convs": both,
    "phonemes": phonemes,
    "punctuated": punctuated,
    "blanks": chosen,
    "dropout_0.2": dataclasses.replace(chosen, dropout=0.2),
    "dropout_0.05_decoder": dataclasses.replace(chosen, decoder_dropout=0.05),
    "attention_alone": dataclasses.replace(chosen, prenet=0, encoder_kernel=1, decoder_depthwise=0, duration_convs=0),
    "encoder_kernel_3": dataclasses.replace(chosen, prenet=0, encoder_kernel=3),
    "encoder_depthwise": dataclasses.replace(chosen, prenet=0, encoder_kernel=1, encoder_depthwise=7),
    "kernel_3": dataclasses.replace(chosen, encoder_kernel=3),
    "kernel_3_3": dataclasses.replace(chosen, encoder_kernel=3, encoder_out_kernel=3),
    "no_prenet": dataclasses.replace(chosen, prenet=0),
    "encoder_factor_2": dataclasses.replace(chosen, prenet=0, encoder_factor=2),
    "encoder_factor_1": dataclasses.replace(chosen, prenet=0, encoder_factor=1),
    "prenet_dropout_0.5": dataclasses.replace(chosen, prenet_dropout=0.5),
    "no_decoder_convs": dataclasses.replace(chosen, decoder_depthwise=0),
    "decoder_depthwise_3": dataclasses.replace(chosen, decoder_depthwise=3),
    "decoder_kernel_3": dataclasses.replace(chosen, decoder_depthwise=0, decoder_kernel=3, decoder_factor=2),
    "tiny": dataclasses.replace(chosen, encoder_blocks=3, encoder_width=192, decoder_blocks=6, decoder_width=256),
    "normal": dataclasses.replace(chosen, encoder_blocks=4, encoder_width=512, decoder_blocks=12, decoder_width=512),
    "deep_encoder": dataclasses.replace(chosen, encoder_blocks=6),
    "learning_rate_1e-3": dataclasses.replace(chosen, learning_rate=1e-3),
    "weight_decay_0.1": dataclasses.replace(chosen, weight_decay=0.1),
}


def rms_norm(x, weight=None):
    return F.rms_norm(x, x.shape[-1:], None if weight is None else weight.to(x.dtype), eps=1e-6)


class Conv(nn.Module):
    """Convolution over positions of [rows, positions, width]; padding is zero before and after."""

    def __init__(self, inputs, outputs, kernel, groups=1, std=None, bias=True):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=bias)
        nn.init.normal_(self.conv.weight, 0, (kernel * inputs / groups) ** -0.5 if std is None else std)
        if bias:
            nn.init.zeros_(self.conv.bias)

    def forward(self, x, valid):
        if self.conv.kernel_size[0] == 1:
            return F.linear(x, self.conv.weight.squeeze(-1), self.conv.bias)
        return self.conv((x * valid).transpose(1, 2)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        nn.init.normal_(self.qkv.weight, 0, width**-0.5)
        nn.init.normal_(self.out.weight, 0, width**-0.5 / 2)

    def forward(self, x, rotary, keys):
        heads = self.qkv(x).unflatten(-1, (3, -1, HEAD)).permute(2, 0, 3, 1, 4)
        a, b = heads[:2].chunk(2, -1)
        cosines, sines = rotary
        turned = torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)
        return self.out(F.scaled_dot_product_attention(turned[0], turned[1], heads[2], keys).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, factor, kernel, out_kernel, depthwise, rate):
        super().__init__()
        self.depthwise = Conv(width, width, depthwise, groups=width, std=0, bias=False) if depthwise else None
        self.up = Conv(width, factor * width, kernel, bias=False)
        self.down = Conv(factor * width, width, out_kernel, bias=False, std=(factor * width * out_kernel) ** -0.5 / 2)
        self.rate = rate

    def forward(self, x, valid):
        if self.depthwise is not None:
            x = x + self.depthwise(x, valid)
        hidden = F.dropout(F.gelu(self.up(x, valid), approximate="tanh"), self.rate, self.training)
        return self.down(hidden, valid)


class Block(nn.Module):
    def __init__(self, width, factor, kernel, out_kernel, depthwise, rate, adaptive):
        super().__init__()
        self.attention, self.rate, self.adaptive = Attention(width), rate, adaptive
        self.feed = FeedForward(width, factor, kernel, out_kernel, depthwise, rate)
        self.table = nn.Parameter(torch.zeros(6, width) if adaptive else torch.ones(2, width))

    def forward(self, x, valid, rotary, keys, shared=None):
        drop = lambda branch: F.dropout(branch, self.rate, self.training)
        if not self.adaptive:
            x = x + drop(self.attention(rms_norm(x, self.table[0]), rotary, keys))
            return x + drop(self.feed(rms_norm(x, self.table[1]), valid))
        m = (shared + self.table).split(1, 1)
        x = x + m[2] * drop(self.attention(rms_norm(x) * (1 + m[0]) + m[1], rotary, keys))
        return x + m[5] * drop(self.feed(rms_norm(x) * (1 + m[3]) + m[4], valid))


class Voice(nn.Module):
    def __init__(self, variant, vocabulary, n_mels=80):
        super().__init__()
        v = self.variant = variant
        self.n_mels = n_mels
        decoder_rate = v.dropout if v.decoder_dropout < 0 else v.decoder_dropout
        e, d = v.encoder_width, v.decoder_width
        self.embedding = nn.Parameter(torch.randn(vocabulary, e))
        self.prenet = nn.ModuleList(Conv(e, e, 5) for _ in range(v.prenet))
        self.prenet_norms = nn.ParameterList(torch.ones(e) for _ in range(v.prenet))
        self.encoder = nn.ModuleList(
            Block(e, v.encoder_factor, v.encoder_kernel, v.encoder_out_kernel, v.encoder_depthwise, v.dropout, False)
            for _ in range(v.encoder_blocks))
        self.norm = nn.Parameter(torch.ones(e))
        self.mu = nn.Linear(e, n_mels)
        self.duration = nn.ModuleList([Conv(e, e, 3) for _ in range(v.duration_convs)] or [Conv(e, e, 1)])
        self.duration_norms = nn.ParameterList(torch.ones(e) for _ in self.duration)
        self.duration_out = nn.Linear(e, 1)
        self.into = nn.Linear(2 * n_mels, d)
        self.time = nn.Sequential(nn.Linear(256, d), nn.SiLU(), nn.Linear(d, d), nn.SiLU())
        self.shared = nn.Linear(d, 6 * d)
        self.decoder = nn.ModuleList(
            Block(d, v.decoder_factor, v.decoder_kernel, 1, v.decoder_depthwise, decoder_rate, True)
            for _ in range(v.decoder_blocks))
        self.final = nn.Linear(d, 2 * d)
        self.out = nn.Linear(d, n_mels)
        for layer in (self.shared, self.final, self.out):
            nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
        rates = torch.exp(torch.arange(HEAD // 2) * (-math.log(10000.0) * 2 / HEAD))
        angles = torch.arange(4096.0).unsqueeze(1) * rates
        self.register_buffer("cosines", angles.cos()), self.register_buffer("sines", angles.sin())

    def rotary(self, positions, dtype):
        return self.cosines[:positions].to(dtype), self.sines[:positions].to(dtype)

    def encode(self, tokens, lengths, dtype):
        drop = lambda x, rate: F.dropout(x, rate, self.training)
        v = self.variant
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        valid, keys = inside.unsqueeze(-1).to(dtype), inside[:, None, None, :]
        x = drop(F.embedding(tokens, self.embedding), v.dropout if v.prenet == 0 else 0).to(dtype)
        prenet_rate = v.dropout if v.prenet_dropout < 0 else v.prenet_dropout
        h = x
        for conv, norm in zip(self.prenet, self.prenet_norms):
            h = drop(F.silu(rms_norm(conv(h, valid), norm)), prenet_rate)
        x = x + h if v.prenet else x
        rotary = self.rotary(tokens.shape[1], dtype)
        for block in self.encoder:
            x = block(x, valid, rotary, keys)
        x = rms_norm(x, self.norm)
        h = x.detach()
        for conv, norm in zip(self.duration, self.duration_norms):
            h = drop(rms_norm(F.silu(conv(h, valid)), norm), v.dropout)
        return self.mu(x).float(), self.duration_out(h).squeeze(-1).float(), inside

    def decode(self, x, mu, time, lengths, dtype):
        inside = torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)
        valid, keys = inside.unsqueeze(-1).to(dtype), inside[:, None, None, :]
        rates = torch.exp(torch.arange(128, device=x.device) * (-math.log(10000.0) * 2 / 256))
        angles = 1000 * time.unsqueeze(1) * rates
        moment = self.time(torch.cat((angles.sin(), angles.cos()), 1).to(dtype))
        shared = self.shared(moment).unflatten(-1, (6, -1))
        h = self.into(torch.cat((x, mu), -1).to(dtype))
        rotary = self.rotary(x.shape[1], dtype)
        for block in self.decoder:
            h = block(h, valid, rotary, keys, shared)
        scale, shift = self.final(moment).unflatten(-1, (2, -1)).split(1, 1)
        return self.out(rms_norm(h) * (1 + scale) + shift).float()

    def losses(self, tokens, text_lengths, mel, mel_lengths, align, dtype, time=None, noise=None):
        mu, log_durations, token_inside = self.encode(tokens, text_lengths, dtype)
        token_of_frame = align(mel, mu.detach(), text_lengths, mel_lengths)
        inside = (token_of_frame >= 0)
        index = token_of_frame.clamp_min(0).long()
        frame_mu = mu.gather(1, index.unsqueeze(-1).expand(-1, -1, self.n_mels)) * inside.unsqueeze(-1)
        frames = torch.zeros_like(log_durations).scatter_add(1, index, inside.float())
        values = inside.sum() * self.n_mels
        squares = lambda a, b: ((a - b).square() * inside.unsqueeze(-1)).sum() / values
        prior = 0.5 * (squares(mel, frame_mu) + math.log(2 * math.pi))
        duration = ((log_durations - frames.clamp_min(1).log()).square() * token_inside).sum() / token_inside.sum()
        time = torch.rand(mel.shape[0], device=mel.device) if time is None else time
        noise = torch.randn_like(mel) if noise is None else noise
        t = time.view(-1, 1, 1)
        flow = self.decode((1 - (1 - SIGMA_MIN) * t) * noise + t * mel, frame_mu, time, mel_lengths, dtype)
        return torch.stack([prior, duration, squares(flow, mel - (1 - SIGMA_MIN) * noise)])

    @torch.no_grad()
    def synthesize(self, tokens, dtype, steps=16, temperature=0.667, generator=None):
        lengths = torch.tensor([len(tokens)], device=self.cosines.device)
        mu, log_durations, _ = self.encode(tokens.unsqueeze(0), lengths, dtype)
        durations = log_durations[0].exp().round().clamp(1, 200).long()
        mu = mu[0].repeat_interleave(durations, 0).unsqueeze(0)
        lengths = torch.tensor([mu.shape[1]], device=mu.device)
        x = torch.randn(mu.shape, generator=generator, device=mu.device) * temperature
        for step in range(steps):
            time = torch.full((1,), step / steps, device=mu.device)
            x = x + self.decode(x, mu, time, lengths, dtype) / steps
        return x[0]


class Aligner:
    """Monotonic alignment search by the project's GPU kernel."""

    def __init__(self, library):
        self.library = ctypes.CDLL(str(library))
        self.library.align_scratch_bytes.restype = ctypes.c_int64

    def __call__(self, mel, mu, text_lengths, mel_lengths):
        with torch.autocast("cuda", enabled=False):
            scores = torch.baddbmm(mu.square().sum(-1).unsqueeze(1), mel, mu.transpose(1, 2), beta=-0.5).contiguous()
        return self.search(scores, text_lengths, mel_lengths)

    def search(self, scores, text_lengths, mel_lengths):
        """Scores [rows, frames, tokens]: the token of each frame, -1 in padding."""
        rows, frames, tokens = scores.shape
        path = torch.empty(rows, frames, dtype=torch.int32, device=scores.device)
        durations = torch.empty(rows, tokens, dtype=torch.int32, device=scores.device)
        size = [ctypes.c_int64(n) for n in (rows, tokens, frames)]
        scratch = torch.empty(max(1, self.library.align_scratch_bytes(*size)), dtype=torch.uint8, device=scores.device)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (scores, text_lengths, mel_lengths, path, durations, scratch)]
        self.library.align(*size, *pointers, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return path


ALIGN_SOURCE = """
#include "model/alignment.h"
using namespace myxtts;
extern "C" int64_t align_scratch_bytes(int64_t rows, int64_t tokens, int64_t frames) {
  AlignmentProblem p; p.rows = rows; p.tokens = tokens; p.frames = frames; return alignment_scratch_bytes(p);
}
extern "C" void align(int64_t rows, int64_t tokens, int64_t frames, const float* scores, const int32_t* text_lengths,
    const int32_t* mel_lengths, int32_t* token_of_frame, int32_t* durations, void* scratch, void* stream) {
  align_on_gpu({rows, tokens, frames, scores, text_lengths, mel_lengths, token_of_frame, durations}, scratch,
               static_cast<StreamHandle>(stream));
}
"""


def build_aligner(folder):
    library = folder / "align.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "align.cu").write_text(ALIGN_SOURCE)
        subprocess.run(["nvcc", "-O3", "-std=c++20", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-I", ROOT / "src",
                        folder / "align.cu", ROOT / "src/model/cuda/alignment_gpu.cu", "-o", library], check=True)
    return library


def cpu_align(mel, mu, text_lengths, mel_lengths):
    from twin.voice import align_frames

    return align_frames(mel, mu, text_lengths, mel_lengths)


class Data:
    def __init__(self, file, variant, device):
        arrays = np.load(file)
        unit = variant.unit
        self.vocabulary = int(arrays[f"vocabulary_{unit}"])
        self.mean, self.std, self.device = float(arrays["mel_mean"]), float(arrays["mel_std"]), device
        self.parts = {}
        for part in ("train", "held_out"):
            tokens = np.split(arrays[f"{part}_{unit}"], arrays[f"{part}_{unit}_ends"][:-1])
            if variant.blanks:
                tokens = [np.stack([np.ones_like(t), t], 1).reshape(-1).tolist() + [1] for t in tokens]
            mels = np.split(arrays[f"{part}_mel"], arrays[f"{part}_mel_ends"][:-1])
            # The search needs a frame per token.
            kept = [i for i in range(len(mels)) if len(tokens[i]) <= len(mels[i]) or part == "held_out"]
            self.parts[part] = {
                "ids": [str(arrays[f"{part}_ids"][i]) for i in kept],
                "tokens": [torch.tensor(np.asarray(tokens[i]), dtype=torch.int64) for i in kept],
                "mels": [(torch.from_numpy(mels[i].astype(np.float32)) - self.mean) / self.std for i in kept],
            }

    def buckets(self, count, multiple=32):
        """Clips of similar length, each bucket padded to one static shape and resident on the device."""
        part = self.parts["train"]
        order = sorted(range(len(part["mels"])), key=lambda i: len(part["mels"][i]))
        result = []
        for share in np.array_split(order, count):
            frames = -(-max(len(part["mels"][i]) for i in share) // multiple) * multiple
            texts = -(-max(len(part["tokens"][i]) for i in share) // 8) * 8
            mel = torch.zeros(len(share), frames, part["mels"][0].shape[1])
            tokens = torch.zeros(len(share), texts, dtype=torch.int64)
            for row, i in enumerate(share):
                mel[row, : len(part["mels"][i])] = part["mels"][i]
                tokens[row, : len(part["tokens"][i])] = part["tokens"][i]
            lengths = [torch.tensor([len(part[key][i]) for i in share], dtype=torch.int32) for key in ("tokens", "mels")]
            result.append([t.to(self.device) for t in (tokens, lengths[0], mel, lengths[1])])
        return result


class Trainer:
    def __init__(self, variant, data, align, dtype, updates):
        self.variant, self.align, self.dtype, self.updates = variant, align, dtype, updates
        self.voice = Voice(variant, data.vocabulary).to(data.device)
        matrices = [p for p in self.voice.parameters() if p.dim() > 1]
        others = [p for p in self.voice.parameters() if p.dim() <= 1]
        self.rate = torch.tensor(0.0, device=data.device)
        groups = [{"params": matrices, "weight_decay": variant.weight_decay}, {"params": others, "weight_decay": 0.0}]
        on_gpu = data.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(groups, lr=self.rate, betas=(0.9, 0.99), fused=on_gpu, capturable=on_gpu)
        self.parameters = matrices + others
        self.ema = [p.detach().clone() for p in self.parameters]
        self.decay = torch.tensor(0.0, device=data.device)
        self.sums = torch.zeros(3, device=data.device)
        self.graphs, self.pool = {}, None

    def step(self, batch):
        with torch.autocast(self.rate.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            losses = self.voice.losses(*batch, self.align, self.dtype)
        losses.sum().backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 5.0, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # a graph owns the gradients of its step
        with torch.no_grad():
            torch._foreach_mul_(self.ema, self.decay)
            torch._foreach_add_(self.ema, torch._foreach_mul([p.detach() for p in self.parameters], 1 - self.decay))
            self.sums += losses.detach()

    def capture(self, key, batch):
        static = [t.clone() for t in batch]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self.step(static)
        self.pool = self.pool or graph.pool()
        self.graphs[key] = graph, static

    def schedule(self, update):
        warm = min(500, self.updates // 10)
        along = (update - warm) / max(1, self.updates - warm)
        scale = update / warm if update < warm else 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * along))
        self.rate.fill_(self.variant.learning_rate * scale)
        self.decay.fill_(min(0.999, (1 + update) / (10 + update)))


@torch.no_grad()
def held_out_losses(voice, part, align, dtype, device):
    sums, generator = torch.zeros(3), torch.Generator(device).manual_seed(1)
    for tokens, mel in zip(part["tokens"], part["mels"]):
        if len(tokens) > len(mel):
            continue
        lengths = [torch.tensor([len(t)], dtype=torch.int32, device=device) for t in (tokens, mel)]
        noise = torch.randn(1, *mel.shape, generator=generator, device=device)
        time = torch.rand(1, generator=generator, device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
            sums += voice.losses(tokens[None].to(device), lengths[0], mel[None].to(device), lengths[1], align, dtype, time, noise).cpu()
    return (sums / len(part["mels"])).tolist()


def train(name, variant, options, align, device):
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    data = Data(options.data, variant, device)
    buckets = data.buckets(options.buckets)
    trainer = Trainer(variant, data, align, dtype, options.updates)
    voice, held_out = trainer.voice, data.parts["held_out"]
    checkpoints = sorted({int(n) for n in options.checkpoints.split(",")} | {options.updates}) if options.checkpoints else [options.updates]
    sizes = np.array([len(bucket[0]) for bucket in buckets])
    queues, log, seconds, began = {}, [], 0.0, time.time()

    def draw():
        b = rng.choice(len(buckets), p=sizes / sizes.sum())
        if len(queues.get(b, ())) < variant.batch_size:
            queues[b] = np.concatenate([queues.get(b, np.zeros(0, np.int64)), rng.permutation(sizes[b])])
            while len(queues[b]) < variant.batch_size:
                queues[b] = np.concatenate([queues[b], rng.permutation(sizes[b])])
        rows, queues[b] = queues[b][: variant.batch_size], queues[b][variant.batch_size :]
        rows = torch.from_numpy(rows).to(device)
        return b, [t.index_select(0, rows) for t in buckets[b]]

    if device.type == "cuda":  # lazy initialisation outside of captures
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                trainer.schedule(1)
                trainer.step(draw()[1])
        torch.cuda.current_stream().wait_stream(stream)
    for update in range(1, options.updates + 1):
        trainer.schedule(update)
        bucket, batch = draw()
        if device.type == "cuda":
            if bucket not in trainer.graphs:
                trainer.capture(bucket, batch)
            graph, static = trainer.graphs[bucket]
            for to, given in zip(static, batch):
                to.copy_(given)
            graph.replay()
        else:
            trainer.step(batch)
        if update % options.log_every and update not in checkpoints:
            continue
        train_losses = (trainer.sums / (options.log_every if update % options.log_every == 0 else update % options.log_every)).tolist()
        trainer.sums.zero_()
        seconds += time.time() - began
        kept = [p.detach().clone() for p in trainer.parameters]
        with torch.no_grad():
            for p, e in zip(trainer.parameters, trainer.ema):
                p.copy_(e)
        voice.eval()
        losses = held_out_losses(voice, held_out, align, dtype, device)
        log.append({"update": update, "seconds": round(seconds, 2), "train": train_losses, "held_out": losses})
        if update in checkpoints:
            generator = torch.Generator(device).manual_seed(1)
            mels = {}
            for clip, tokens in zip(held_out["ids"], held_out["tokens"]):
                with torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
                    mel = voice.synthesize(tokens.to(device), dtype, options.steps, options.temperature, generator)
                mels[clip] = (mel.float().cpu() * data.std + data.mean).numpy().astype(np.float16)
            np.savez(options.out / (f"{name}.npz" if update == options.updates else f"{name}@{update}.npz"), **mels)
        with torch.no_grad():
            for p, k in zip(trainer.parameters, kept):
                p.copy_(k)
        voice.train()
        began = time.time()
    parameters = sum(p.numel() for p in trainer.parameters)
    result = {"variant": dataclasses.asdict(variant), "parameters": parameters, "updates": options.updates, "training_seconds": seconds, "log": log}
    (options.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    best = min(sum(entry["held_out"]) for entry in log)
    print(f"{name}: {parameters / 1e6:.1f} M parameters, {seconds:.0f} s, held out prior {log[-1]['held_out'][0]:.3f} "
          f"duration {log[-1]['held_out'][1]:.3f} flow {log[-1]['held_out'][2]:.3f}, sum {sum(log[-1]['held_out']):.3f} (best {best:.3f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, nargs="?")
    parser.add_argument("--list", action="store_true", help="print the variants")
    parser.add_argument("--variants", default="base")
    parser.add_argument("--updates", type=int, default=8000)
    parser.add_argument("--checkpoints", default="", help="updates after which to synthesize, besides the last")
    parser.add_argument("--log-every", type=int, default=1000)
    parser.add_argument("--buckets", type=int, default=6, help="static shapes")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--temperature", type=float, default=0.667)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--align-library", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.list:
        for name, variant in VARIANTS.items():
            print(f"{name}: {variant}")
        return
    if options.data is None or options.out is None:
        parser.error("DATA.npz and --out are needed")
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = True
    align = Aligner(options.align_library or build_aligner(options.out)) if device.type == "cuda" else cpu_align
    for name in options.variants.split(","):
        train(name, VARIANTS[name], options, align, device)


if __name__ == "__main__":
    main()
