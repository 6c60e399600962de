"""The voice in PyTorch that the C++ one is compared with (bench/twin/)."""
import itertools

import pytest
import torch
import torch.utils.flop_counter
from twin.step import Trainer
from twin.voice import SIZES, Size, Voice, align_frames, step_flops
from twin_inputs import N_MELS, VOCABULARY, difference, gradients, random_batch, random_voice

LITTLE = Size(2, 64, 2, 128)


def expected_shapes(size):
    """What src/model/voice.cpp lays out."""
    e, d = size.encoder_width, size.decoder_width

    def block(name, width, factor, kernel):
        return {f"{name}.attention.in": (3 * width, width), f"{name}.attention.out": (width, width),
                f"{name}.feed.in": (factor * width, kernel * width), f"{name}.feed.out": (width, factor * width)}

    def layer(name, inputs, outputs):
        return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}

    shapes = {"encoder.embedding": (VOCABULARY, e), "encoder.norm": (e,)}
    for i in range(size.encoder_blocks):
        name = f"encoder.blocks.{i}"
        shapes |= block(name, e, 4, 5) | {f"{name}.attention.norm": (e,), f"{name}.feed.norm": (e,)}
    shapes |= layer("encoder.mu", e, N_MELS) | layer("duration.out", e, 1)
    for i in range(2):
        shapes |= layer(f"duration.layers.{i}", 3 * e, e) | {f"duration.layers.{i}.norm": (e,)}
    shapes |= layer("decoder.in", 2 * N_MELS, d) | layer("decoder.time.in", 256, d) | layer("decoder.time.out", d, d)
    shapes |= layer("decoder.modulation", d, 6 * d)
    for i in range(size.decoder_blocks):
        shapes |= block(f"decoder.blocks.{i}", d, 4, 1)
        shapes |= {f"decoder.blocks.{i}.modulation": (6, d), f"decoder.blocks.{i}.feed.depthwise": (7, d)}
    return shapes | layer("decoder.final.modulation", d, 2 * d) | layer("decoder.out", d, N_MELS)


@pytest.mark.parametrize("name", SIZES)
def test_the_twins_weights_have_the_names_and_shapes_of_ours(name):
    with torch.device("meta"):
        voice = Voice(name, VOCABULARY, N_MELS, 0, 1)
    assert {key: tuple(value.shape) for key, value in voice.state_dict().items()} == expected_shapes(SIZES[name])


def test_padding_changes_nothing_in_the_twin():
    voice = random_voice(LITTLE)
    lengths = [7, 12, 0, 3], [20, 31, 0, 3]
    tight, tight_gradients = gradients(voice, random_batch(*lengths))
    loose, loose_gradients = gradients(voice, random_batch(*lengths, extra_tokens=9, extra_frames=40))
    for name in ("total", "prior", "duration", "flow"):
        assert loose[name].item() == pytest.approx(tight[name].item(), rel=1e-5), name
    assert torch.equal(loose["token_of_frame"][:, :31], tight["token_of_frame"])
    assert (loose["token_of_frame"][:, 31:] == -1).all()
    for name, gradient in tight_gradients.items():
        assert gradient.norm() > 0, name
        assert difference(loose_gradients[name], gradient) < 1e-4, name


def test_the_twins_alignment_is_the_best_of_all():
    generator = torch.Generator().manual_seed(5)
    text_lengths, mel_lengths = [3, 4, 1, 0, 5], [7, 4, 6, 0, 3]
    mel, mu = torch.randn(5, 7, 2, generator=generator), torch.randn(5, 5, 2, generator=generator)
    got = align_frames(mel, mu, torch.tensor(text_lengths), torch.tensor(mel_lengths))
    for row, (tokens, frames) in enumerate(zip(text_lengths, mel_lengths)):
        expected = [-1] * 7
        if 0 < tokens <= frames:
            score = -0.5 * (mel[row, :, None] - mu[row, None]).square().sum(-1)
            ways = []
            for cuts in itertools.combinations(range(1, frames), tokens - 1):
                ways.append([sum(frame >= cut for cut in cuts) for frame in range(frames)])
            expected[:frames] = max(ways, key=lambda way: float(sum(score[f, t] for f, t in enumerate(way))))
        assert got[row].tolist() == expected, row


def test_a_given_alignment_is_used_and_full_rows_need_no_mask():
    voice = random_voice(LITTLE)
    batch = random_batch([6, 6], [15, 15])
    searched = voice.losses(**batch)
    voice.key_mask = False
    given = voice.losses(**batch, align="given", token_of_frame=searched["token_of_frame"])
    assert given["total"].item() == pytest.approx(searched["total"].item(), rel=1e-5)
    with pytest.raises(ValueError):
        voice.losses(**batch, align="given")


@pytest.mark.parametrize("weights", ["autocast", "masters"])
def test_the_twin_learns_in_bfloat16(weights):
    torch.manual_seed(0)
    voice = Voice(LITTLE, VOCABULARY, N_MELS, -5, 2)
    batch = random_batch([6, 4], [15, 9])
    batch["token_of_frame"] = voice.losses(**batch)["token_of_frame"]
    del batch["time"], batch["noise"]
    trainer = Trainer(voice, weights=weights, ema=0.9, learning_rate=1e-3)
    before = [p.clone() for p in trainer.ema]
    losses = [float(trainer.step(batch)) for _ in range(20)]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5]), losses
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.ema))


def test_the_arithmetic_of_a_step_is_counted():
    counter = torch.utils.flop_counter.FlopCounterMode(display=False)
    voice = random_voice(LITTLE)
    voice.key_mask = False
    with counter:
        gradients(voice, random_batch([16, 16], [32, 32]))
    counted = counter.get_total_flops()
    # The gradients of inputs that need none, and the search's scores, are what we do not follow.
    assert step_flops(LITTLE, 2, 32, 16) == pytest.approx(counted, rel=0.05)
