"""The twin of bench/twin/, and weights and batches to try it with."""
import torch
from twin.voice import Voice, no_dropout

VOCABULARY, N_MELS, MEL_MEAN, MEL_STD = 40, 80, -5.0, 2.0


def random_voice(size="tiny", seed=1, speakers=0, languages=0):
    """No weight is zero, so that every gradient says something."""
    torch.manual_seed(seed)
    voice = Voice(size, VOCABULARY, N_MELS, MEL_MEAN, MEL_STD, speakers=speakers, languages=languages)
    with torch.no_grad():
        for parameter in voice.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return voice


def random_batch(text_lengths, mel_lengths, extra_tokens=0, extra_frames=0, seed=2):
    """Padding holds rubbish, as much as asked for; what is valid depends on the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    rows = len(text_lengths)
    shape = (rows, max(text_lengths) + extra_tokens), (rows, max(mel_lengths) + extra_frames, N_MELS)
    rubbish = torch.Generator().manual_seed(seed + 1000)
    tokens = torch.randint(0, VOCABULARY, shape[0], generator=rubbish, dtype=torch.int32)
    mel, noise = (torch.randn(shape[1], generator=rubbish) * 100 for _ in range(2))
    for row, (text, frames) in enumerate(zip(text_lengths, mel_lengths)):
        tokens[row, :text] = torch.randint(0, VOCABULARY, (text,), generator=generator, dtype=torch.int32)
        mel[row, :frames] = torch.randn((frames, N_MELS), generator=generator) * MEL_STD + MEL_MEAN
        noise[row, :frames] = torch.randn((frames, N_MELS), generator=generator)
    return {"tokens": tokens, "text_lengths": torch.tensor(text_lengths, dtype=torch.int32), "mel_lengths": torch.tensor(mel_lengths, dtype=torch.int32),
            "mel": mel, "time": torch.rand(rows, generator=generator), "noise": noise}


def random_condition(rows, speakers, languages, seed=3):
    """Of rows by table and by reference, one of an unknown speaker, one without a reference, one without a condition."""
    generator = torch.Generator().manual_seed(seed)
    speaker = torch.arange(rows, dtype=torch.int32) % speakers
    speaker[-1], heard = -1, (rows + 1) // 2
    lengths = torch.randint(5, 40, (heard,), generator=generator, dtype=torch.int32)
    lengths[1] = 0
    kept = torch.rand(rows, generator=generator) * 0.5 + 0.5
    kept[-2] = 0.05
    reference = torch.randn(heard, 40, N_MELS, generator=generator) * MEL_STD + MEL_MEAN
    return {"speaker": speaker, "language": torch.arange(rows, dtype=torch.int32) % languages, "reference": reference,
            "reference_lengths": lengths, "kept": kept}


def gradients(voice, batch, dropout=no_dropout):
    """The losses, and the gradient of each weight by name."""
    voice.zero_grad()
    losses = voice.losses(**batch, dropout=dropout)
    losses["total"].backward()
    return losses, {name: p.grad.clone() for name, p in voice.named_parameters()}


def difference(a, b):
    """Of two tensors, relative to the second."""
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-30))
