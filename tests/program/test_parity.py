"""The voice in C++ and its twin in PyTorch: the same losses, alignment and gradients from the same weights and batch.

build/tests/step_dump IN OUT computes one step in float. IN: `model.<name>`, the batch, and the metadata size, mel_mean
and mel_std. OUT: `loss`, `loss_prior`, `loss_duration`, `loss_flow`, `token_of_frame`, `gradient.<name>`."""
import re
import subprocess

import pytest
import torch
from conftest import BINARY, HANG_S
from safetensors.torch import load_file, save_file
from twin import vocoder as twin_vocoder
from twin.voice import Dropout, no_dropout
from twin_inputs import MEL_MEAN, MEL_STD, difference, gradients, random_batch, random_condition, random_voice

BUILD = BINARY.parent
STEP_DUMP, VOCODER_DUMP = BUILD / "tests" / "step_dump", BUILD / "tests" / "vocoder_dump"


def built_without_libtorch():
    cache = BUILD / "CMakeCache.txt"
    options = dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text(), re.MULTILINE)) if cache.exists() else {}
    return options.get("MYXTTS_TORCH") == "OFF" or options.get("Torch_DIR", "").endswith("NOTFOUND")


@pytest.fixture(scope="module")
def step_dump(tmp_path_factory):
    """Runs the C++ step: what it wrote, by name."""
    if not STEP_DUMP.exists() and built_without_libtorch():
        pytest.skip(f"{BUILD} was built without libtorch: the C++ voice is NOT compared with its twin")
    assert STEP_DUMP.exists(), f"{STEP_DUMP} is missing, and libtorch is not the reason: build it first"
    folder = tmp_path_factory.mktemp("parity")

    def run(voice, batch, size, dropout=None):
        weights = {f"model.{name}": value.detach().contiguous() for name, value in voice.state_dict().items()}
        metadata = {"size": size, "mel_mean": str(MEL_MEAN), "mel_std": str(MEL_STD)}
        metadata |= {"condition_dropout": str(batch.get("condition_dropout", 0))}
        if dropout:
            metadata |= {"dropout": str(dropout.rate), "dropout_key": str(dropout.key.item())}
        tensors = {name: value for name, value in batch.items() if torch.is_tensor(value)}
        save_file(weights | tensors, folder / "in.safetensors", metadata)
        done = subprocess.run([STEP_DUMP, folder / "in.safetensors", folder / "out.safetensors"], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return load_file(folder / "out.safetensors")

    return run


@pytest.mark.parametrize("rate", [0, 0.1])
@pytest.mark.parametrize("seed, speakers", [(1, 0), (2, 0), (3, 5)])
def test_the_voice_and_its_twin_are_one(step_dump, seed, speakers, rate):
    voice = random_voice("tiny", seed, speakers, languages=2)
    batch = random_batch([12, 30, 21, 5], [60, 95, 21, 48], extra_tokens=3, extra_frames=11, seed=seed)
    if speakers:
        batch |= random_condition(4, speakers, 2) | {"condition_dropout": 0.2}
    dropout = Dropout(rate, torch.tensor(0x5DEECE66D1234567 + seed)) if rate else None
    expected, expected_gradients = gradients(voice, batch, dropout or no_dropout)
    got = step_dump(voice, batch, "tiny", dropout)

    assert got["token_of_frame"].dtype == torch.int32
    assert torch.equal(got["token_of_frame"], expected["token_of_frame"])
    for ours, theirs in (("loss", "total"), ("loss_prior", "prior"), ("loss_duration", "duration"), ("loss_flow", "flow")):
        assert got[ours].shape == () and got[ours].dtype == torch.float32, ours
        assert got[ours].item() == pytest.approx(expected[theirs].item(), rel=1e-5), ours

    names = {key.removeprefix("gradient.") for key in got if key.startswith("gradient.")}
    assert names == set(expected_gradients)
    for name, gradient in expected_gradients.items():
        assert gradient.norm() > 0, f"{name} has no gradient: nothing is compared"
        assert got[f"gradient.{name}"].shape == gradient.shape, name
    apart = {name: difference(got[f"gradient.{name}"], gradient) for name, gradient in expected_gradients.items()}
    worst = max(apart, key=apart.get)
    assert apart[worst] < 1e-4, f"{worst} is {apart[worst]:.2g} apart; {sum(a >= 1e-4 for a in apart.values())} of {len(apart)} are"


def channels_last(weight):
    """Of a convolution in one or two dimensions, as [out, height, width, in]."""
    return weight.movedim(1, -1).reshape(weight.shape[0], weight.shape[2], -1, weight.shape[1]).contiguous() if weight.dim() > 1 else weight


@pytest.mark.parametrize("mel, sample_rate, n_mels, first", [("hifigan", 22050, 80, -384), ("vocos", 24000, 100, -512)])
def test_the_vocoder_and_its_twin_are_one(tmp_path, mel, sample_rate, n_mels, first):
    if not VOCODER_DUMP.exists() and built_without_libtorch():
        pytest.skip(f"{BUILD} was built without libtorch: the C++ vocoder is NOT compared with its twin")
    torch.manual_seed(4)
    generator = twin_vocoder.Vocoder("tiny", n_mels, 1024, 256, first, MEL_MEAN, MEL_STD)
    discriminators = twin_vocoder.Discriminators(twin_vocoder.SIZES["tiny"].narrower)
    samples = 0.1 * torch.randn(3, 4096) + 0.3 * torch.sin(torch.arange(4096) * 0.07)
    frames = 4096 // 256 + (first == -512)
    batch = {"samples": samples, "mel": torch.randn(3, frames, n_mels) * MEL_STD + MEL_MEAN,
             "mel_lengths": torch.tensor([frames, 0, frames], dtype=torch.int32)}
    valid = (batch["mel_lengths"] > 0).float()

    made = generator(batch["mel"], 4096)
    expected = {"loss_discriminator": twin_vocoder.discriminator_loss(discriminators(samples), discriminators(made.detach()))}
    found = zip(discriminators.named_parameters(), torch.autograd.grad(expected["loss_discriminator"], list(discriminators.parameters())))
    apart = {name: channels_last(gradient) for (name, _), gradient in found}
    expected |= twin_vocoder.generator_losses(made, samples, valid, discriminators(samples), discriminators(made), twin_vocoder.full_band(sample_rate))
    found = zip(generator.named_parameters(), torch.autograd.grad(expected["loss"], list(generator.parameters())))
    gradients_of_both = apart | {f"vocoder.{name}": gradient for (name, _), gradient in found}

    weights = {f"model.{name}": channels_last(value) for name, value in discriminators.state_dict().items()}
    weights |= {f"model.vocoder.{name}": value for name, value in generator.state_dict().items()}
    metadata = {"size": "tiny", "mel": mel, "mel_mean": str(MEL_MEAN), "mel_std": str(MEL_STD)}
    save_file(weights | batch, tmp_path / "in.safetensors", metadata)
    done = subprocess.run([VOCODER_DUMP, tmp_path / "in.safetensors", tmp_path / "out.safetensors"], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    got = load_file(tmp_path / "out.safetensors")
    for name, value in expected.items():
        assert got[name].item() == pytest.approx(value.item(), rel=1e-4), name
    assert {key.removeprefix("gradient.") for key in got if key.startswith("gradient.")} == set(gradients_of_both)
    for name, gradient in gradients_of_both.items():
        assert gradient.norm() > 0 or name.endswith("out.bias"), f"{name} has no gradient: nothing is compared"
        # The terms of a bias's gradient may nearly cancel; then its layer's scale is what rounding is measured by.
        scale = max(gradient.norm(), 0.01 * gradients_of_both[name.removesuffix(".bias") + ".weight"].norm() if name.endswith(".bias") else 0)
        assert (got[f"gradient.{name}"] - gradient).norm() < 1e-3 * scale, name
