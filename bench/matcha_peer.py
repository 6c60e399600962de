#!/usr/bin/env python3
"""Trains Matcha-TTS's own model code on the clips of bench/voice_data.py and synthesizes the held-out texts.

    bench/matcha_peer.py --matcha FOLDER --data FILE.npz --unit phonemes --out FOLDER [--blanks] [--align-library FILE.so]

FOLDER of --matcha holds Matcha's `matcha` package; its model files are used as they are, with the settings of its
configs/model, Adam and clipping at 5. diffusers 0.25.0, einops, conformer 0.3.2 and huggingface_hub < 0.26 must be
importable. Only its input, its training loop and its alignment search are ours. The search is the one of
--align-library on the device, or numpy.

--precision 16 is Matcha's default: fp16 autocast with loss scaling. OUT/log.jsonl gets the losses every 100 updates with
the seconds spent in training alone; OUT/UPDATE.npz the log-mels float16 [frames, n_mels] of the held-out clips by ID."""
import argparse
import functools
import json
import pathlib
import sys
import time
import types
import unittest.mock

import numpy as np
import torch

from voice_ablations import Aligner

BLANK, BUCKETS, N_MELS, LOG_EVERY = 1, 8, 80, 100
LOSSES = ("dur_loss", "prior_loss", "diff_loss")
UNUSED = ("gdown", "hydra", "hydra.core", "hydra.core.hydra_config", "lightning.pytorch", "lightning.pytorch.loggers",
          "lightning.pytorch.utilities", "matplotlib", "matplotlib.pyplot", "omegaconf", "rich", "rich.prompt", "rich.syntax",
          "rich.tree", "wget")


class Module(torch.nn.Module):
    """In place of LightningModule."""

    def save_hyperparameters(self, *_, **__):
        pass


def search_numpy(scores, text_lengths, mel_lengths):
    """Tokens of the frames [rows, frames], -1 in padding, from scores [rows, frames, tokens]."""
    rows, frames, tokens = scores.shape
    best = np.full((frames, rows, tokens), -1e9)
    best[0, :, 0] = scores[:, 0, 0]
    for frame in range(1, frames):
        moved = np.pad(best[frame - 1, :, :-1], ((0, 0), (1, 0)), constant_values=-1e9)
        best[frame] = np.maximum(best[frame - 1], moved) + scores[:, frame]
    row, token, token_of_frame = np.arange(rows), text_lengths - 1, np.full((rows, frames), -1, np.int32)
    for frame in range(frames - 1, -1, -1):
        inside = frame < mel_lengths
        token_of_frame[inside, frame] = token[inside]
        before = best[frame - 1]
        moves = (token == frame) | (before[row, token] < before[row, token - 1])
        token = token - (inside & (token > 0) & moves)
    return token_of_frame


def maximum_path_by(library):
    """Matcha's maximum_path(value, mask), both [rows, tokens, frames]."""
    search = library and Aligner(library).search

    def maximum_path(value, mask):
        value = value * mask
        scores = value.float().transpose(1, 2).contiguous()
        lengths = [mask[:, :, 0].ne(0).sum(1, dtype=torch.int32), mask[:, 0].ne(0).sum(1, dtype=torch.int32)]
        if search:
            token_of_frame = search(scores, *lengths)
        else:
            token_of_frame = torch.from_numpy(search_numpy(*(each.cpu().numpy() for each in (scores, *lengths)))).to(value.device)
        tokens = torch.arange(value.shape[1], dtype=torch.int32, device=value.device)
        return (token_of_frame[:, None] == tokens[:, None]).to(value.dtype)

    return maximum_path


def matcha_model(folder, vocabulary, statistics, maximum_path):
    # diffusers asks for these if they are installed, in versions of its own time.
    sys.modules.update({name: None for name in ("accelerate", "flax", "jax", "peft", "transformers", "xformers")})
    # It looks for some of the unused packages, so it comes before their substitutes; it needs no images here.
    sys.modules.update({"PIL": unittest.mock.MagicMock(__version__="10.0.0"), "PIL.Image": unittest.mock.MagicMock(),
                        "PIL.ImageOps": unittest.mock.MagicMock()})
    import diffusers.models.attention  # noqa: F401

    sys.modules.update({name: unittest.mock.MagicMock() for name in UNUSED})
    sys.modules["lightning"] = unittest.mock.MagicMock(LightningModule=Module)
    sys.path.insert(0, str(folder))
    import matcha.utils

    sys.modules["matcha.utils.monotonic_align"] = matcha.utils.monotonic_align = types.SimpleNamespace(maximum_path=maximum_path)
    from matcha.models.matcha_tts import MatchaTTS

    settings = types.SimpleNamespace
    encoder = settings(
        encoder_type="RoPE Encoder",
        encoder_params=settings(n_feats=N_MELS, n_channels=192, filter_channels=768, filter_channels_dp=256, n_heads=2, n_layers=6,
                                kernel_size=3, p_dropout=0.1, spk_emb_dim=64, n_spks=1, prenet=True),
        duration_predictor_params=settings(filter_channels_dp=256, kernel_size=3, p_dropout=0.1))
    decoder = dict(channels=[256, 256], dropout=0.05, attention_head_dim=64, n_blocks=1, num_mid_blocks=2, num_heads=2, act_fn="snakebeta")
    return MatchaTTS(n_vocab=vocabulary, n_spks=1, spk_emb_dim=64, n_feats=N_MELS, encoder=encoder, decoder=decoder,
                     cfm=settings(name="CFM", solver="euler", sigma_min=1e-4), data_statistics=statistics, out_size=None)


class Clips:
    """The clips of one part, all on the device."""

    def __init__(self, data, part, unit, blanks, device, limit=None):
        ends, mel_ends = data[f"{part}_{unit}_ends"][:limit], data[f"{part}_mel_ends"][:limit]
        texts = np.split(data[f"{part}_{unit}"][: ends[-1]], ends[:-1])
        if blanks:
            texts = [np.insert(np.full(len(text) + 1, BLANK), np.arange(1, len(text) + 1), text) for text in texts]
        self.ids = data[f"{part}_ids"][:limit]
        self.text_lengths, self.mel_lengths = np.array([len(text) for text in texts]), np.diff(mel_ends, prepend=0)
        short = self.ids[self.text_lengths > self.mel_lengths]
        if len(short):
            sys.exit(f"{part}: more tokens than frames in {', '.join(short)}")
        mel = (data[f"{part}_mel"][: mel_ends[-1]].astype(np.float32) - data["mel_mean"]) / data["mel_std"]
        arrays = np.concatenate(texts).astype(np.int64), self.text_lengths, mel.astype(np.float32), self.mel_lengths
        self.tokens, self.on_text, self.mel, self.on_mel = (torch.from_numpy(array).to(device) for array in arrays)

    def batch(self, rows, on_device):
        """The arguments of MatchaTTS.forward; `rows` in numpy and on the device, so that nothing waits."""
        def padded(values, lengths, width):
            index = torch.arange(width, device=values.device)
            first = (lengths.cumsum(0) - lengths)[on_device, None]
            inside = index < lengths[on_device, None]
            taken = values[(first + index).clamp(max=len(values) - 1)]
            return taken * inside.view(*inside.shape, *[1] * (taken.ndim - 2))

        frames = -(-int(self.mel_lengths[rows].max()) // 4) * 4
        return {"x": padded(self.tokens, self.on_text, int(self.text_lengths[rows].max())), "x_lengths": self.on_text[on_device],
                "y": padded(self.mel, self.on_mel, frames).transpose(1, 2).contiguous(), "y_lengths": self.on_mel[on_device]}


def plan(mel_lengths, updates, batch_size, seed):
    """Clips of each update [updates, batch_size]: of one bucket of similar lengths, in permutations of the bucket."""
    random = np.random.default_rng(seed)
    buckets = [bucket for bucket in np.array_split(np.argsort(mel_lengths, kind="stable"), BUCKETS) if len(bucket)]
    left, batches = [bucket[:0] for bucket in buckets], []
    for chosen in random.choice(len(buckets), updates, p=[len(bucket) / len(mel_lengths) for bucket in buckets]):
        while len(left[chosen]) < batch_size:
            left[chosen] = np.concatenate([left[chosen], random.permutation(buckets[chosen])])
        batches.append(left[chosen][:batch_size])
        left[chosen] = left[chosen][batch_size:]
    return np.array(batches)


def held_out(model, clips, autocast, options):
    """Mean losses of the clips, and a log-mel for each text by model.synthesise in fp32. The same noise at each call."""
    order, sums, mels = np.argsort(clips.mel_lengths, kind="stable"), np.zeros(len(LOSSES)), {}
    model.eval()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(options.seed)
        # The losses come first: rotary tables that inference mode makes could not be trained with.
        for rows in np.split(order, range(options.batch_size, len(order), options.batch_size)):
            with autocast():
                losses = model(**clips.batch(rows, torch.from_numpy(rows).to(options.device)))[: len(LOSSES)]
            sums += len(rows) * torch.stack(losses).double().cpu().numpy()
        for row, clip in enumerate(clips.ids):
            batch = clips.batch(np.array([row]), torch.tensor([row], device=options.device))
            out = model.synthesise(batch["x"], batch["x_lengths"], n_timesteps=options.steps, temperature=options.temperature)
            mels[clip] = out["mel"][0].T.cpu().numpy().astype(np.float16)
    model.train()
    return dict(zip(LOSSES, sums / len(order))), mels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matcha", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--unit", choices=("characters", "phonemes", "punctuated"), required=True)
    parser.add_argument("--blanks", action="store_true", help="a blank before, between and after the tokens, Matcha's add_blank")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--updates", type=int, default=8000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=("32", "bf16", "16"), default="bf16", help="32: fp32 weights and TF32 products")
    parser.add_argument("--checkpoints", default="1000,2000,4000,8000", help="updates after which to synthesize")
    parser.add_argument("--align-library", help="shared library with align and align_scratch_bytes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of training, after which it stops")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--temperature", type=float, default=0.667)
    parser.add_argument("--clips", type=int, help="synthesize only so many of the held-out clips")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    kind = torch.device(options.device).type
    data = dict(np.load(options.data))
    statistics = {"mel_mean": float(data["mel_mean"]), "mel_std": float(data["mel_std"])}
    model = matcha_model(options.matcha, int(data[f"vocabulary_{options.unit}"]), statistics, maximum_path_by(options.align_library))
    model.to(options.device).train()
    train = Clips(data, "train", options.unit, options.blanks, options.device)
    test = Clips(data, "held_out", options.unit, options.blanks, options.device, options.clips)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate, fused=kind == "cuda")
    scaler = torch.amp.GradScaler(kind, enabled=options.precision == "16")
    autocast = functools.partial(torch.autocast, kind, torch.float16 if options.precision == "16" else torch.bfloat16,
                                 enabled=options.precision != "32")
    batches = plan(train.mel_lengths, options.updates, options.batch_size, options.seed)
    on_device = torch.from_numpy(batches).to(options.device)
    checkpoints = {int(update) for update in options.checkpoints.split(",")}
    wait = torch.cuda.synchronize if kind == "cuda" else lambda: None

    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "log.jsonl", "w") as log:
        def write(**line):
            print(json.dumps(line), file=log, flush=True)
            print(json.dumps(line), flush=True)

        write(parameters=sum(each.numel() for each in model.parameters()), precision=options.precision, unit=options.unit,
              blanks=options.blanks, batch_size=options.batch_size, learning_rate=options.learning_rate, seed=options.seed)
        spent, sums, summed = 0.0, torch.zeros(len(LOSSES), device=options.device), 0
        wait()
        start = time.perf_counter()
        for update in range(1, options.updates + 1):
            with autocast():
                losses = model(**train.batch(batches[update - 1], on_device[update - 1]))[: len(LOSSES)]
                total = sum(losses)
            scaler.scale(total).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            sums, summed = sums + torch.stack(losses).detach(), summed + 1
            last = update == options.updates or spent + time.perf_counter() - start >= options.seconds
            if not (last or update % LOG_EVERY == 0 or update in checkpoints):
                continue
            wait()
            spent += time.perf_counter() - start
            if last or update % LOG_EVERY == 0:
                write(update=update, training_seconds=spent, **dict(zip(LOSSES, (sums / summed).tolist())))
                sums, summed = torch.zeros_like(sums), 0
            if last or update in checkpoints:
                means, mels = held_out(model, test, autocast, options)
                write(update=update, training_seconds=spent, held_out=means)
                np.savez(options.out / f"{update}.npz", **mels)
            if last:
                break
            wait()
            start = time.perf_counter()


if __name__ == "__main__":
    main()
