"""The C++ generator of HiFi-GAN beside one in Python, written from the paper's description, with random weights."""
import os
import subprocess

import numpy as np
import pytest
import torch
from conftest import BINARY, HANG_S
from torch.nn import functional

TOOL = BINARY.parent / "tests" / "hifigan_waveform"
FRAMES = 5
pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="built without libtorch, so there is no hifigan_waveform to compare")


def layers():
    """Name, shape of the weight, channels out."""
    yield "conv_pre", (512, 80, 7), 512
    for i, kernel in enumerate((16, 16, 4, 4)):
        channels = 512 >> i
        yield f"ups.{i}", (channels, channels // 2, kernel), channels // 2
        for j, size in enumerate((3, 7, 11)):
            for convs in (1, 2):
                for k in range(3):
                    yield f"resblocks.{3 * i + j}.convs{convs}.{k}", (channels // 2, channels // 2, size), channels // 2
    yield "conv_post", (1, 32, 7), 1


def random_weights():
    torch.manual_seed(4)
    weights = {}
    for name, shape, out in layers():
        fan = shape[1] * shape[2] if not name.startswith("ups") else shape[0] * 2
        weights[name + ".weight"] = torch.randn(shape) * (1.2 / fan**0.5)
        weights[name + ".bias"] = torch.randn(out) * 0.1
    weights["conv_post.weight"] *= 0.1  # so that tanh does not hide what comes before it
    return weights


def reference(weights, mel):
    """mel [batch, frames, 80]; in double."""
    w = {name: tensor.double() for name, tensor in weights.items()}
    conv = lambda x, name, padding, dilation=1: functional.conv1d(
        x, w[name + ".weight"], w[name + ".bias"], padding=padding, dilation=dilation)
    x = conv(mel.double().transpose(1, 2), "conv_pre", 3)
    for i, (rate, kernel) in enumerate(((8, 16), (8, 16), (2, 4), (2, 4))):
        x = functional.leaky_relu(x, 0.1)
        x = functional.conv_transpose1d(x, w[f"ups.{i}.weight"], w[f"ups.{i}.bias"], stride=rate, padding=(kernel - rate) // 2)
        outputs = []
        for j, size in enumerate((3, 7, 11)):
            y, name = x, f"resblocks.{3 * i + j}"
            for k, dilation in enumerate((1, 3, 5)):
                inner = conv(functional.leaky_relu(y, 0.1), f"{name}.convs1.{k}", dilation * (size - 1) // 2, dilation)
                y = y + conv(functional.leaky_relu(inner, 0.1), f"{name}.convs2.{k}", (size - 1) // 2)
            outputs.append(y)
        x = sum(outputs) / 3
    return torch.tanh(conv(functional.leaky_relu(x), "conv_post", 3))[:, 0]


def split(weights, length, direction):
    """As weight normalisation keeps them; a direction's own size means nothing."""
    parts = {}
    for name, tensor in weights.items():
        if name.endswith(".weight"):
            stem = name[: -len(".weight")]
            parts[stem + length] = tensor.norm(dim=(1, 2), keepdim=True)
            parts[stem + direction] = tensor * 3.0
        else:
            parts[name] = tensor
    return parts


def sound(folder, weights, mel, status=0):
    (folder / "names.txt").write_text("".join(f"{n} {' '.join(map(str, t.shape))}\n" for n, t in weights.items()))
    (folder / "weights.bin").write_bytes(b"".join(t.contiguous().numpy().tobytes() for t in weights.values()))
    (folder / "mel.bin").write_bytes(mel.numpy().tobytes())
    done = subprocess.run([TOOL, folder / "names.txt", folder / "weights.bin", str(mel.shape[1]), folder / "mel.bin", folder / "out.bin"],
                          capture_output=True, text=True, timeout=HANG_S, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == status, done.stderr
    return done.stderr if status else np.fromfile(folder / "out.bin", dtype=np.float32).reshape(2, -1)


@pytest.fixture(scope="module")
def weights():
    return random_weights()


@pytest.fixture(scope="module")
def mel():
    return torch.randn(2, FRAMES, 80) * 2 - 4


def test_it_sounds_as_the_published_generator_does(weights, mel, tmp_path):
    expected = reference(weights, mel).numpy()
    assert expected.shape == (2, 256 * FRAMES) and 0.05 < np.abs(expected).mean() < 0.7
    for form in (weights, split(weights, ".weight_g", ".weight_v"),
                 split(weights, ".parametrizations.weight.original0", ".parametrizations.weight.original1")):
        got = sound(tmp_path, form, mel)
        assert np.linalg.norm(got - expected) / np.linalg.norm(expected) < 1e-5


def test_no_frames_are_no_sound_and_one_is_256_samples(weights, mel, tmp_path):
    assert sound(tmp_path, weights, mel[:, :0].contiguous()).size == 0
    one = mel[:, :1].contiguous()
    assert np.abs(sound(tmp_path, weights, one) - reference(weights, one).numpy()).max() < 1e-4


def test_a_tensor_that_does_not_belong_is_named(weights, mel, tmp_path):
    without = {n: t for n, t in weights.items() if n != "resblocks.7.convs2.1.bias"}
    assert "'resblocks.7.convs2.1.bias' is missing" in sound(tmp_path, without, mel, status=1)
    more = {**weights, "resblocks.12.convs1.0.weight": torch.zeros(1)}
    assert "no tensor 'resblocks.12.convs1.0.weight'" in sound(tmp_path, more, mel, status=1)
    wrong = {**weights, "ups.1.weight": weights["ups.1.weight"].transpose(0, 1)}
    assert "'ups.1.weight' has shape [128, 256, 16]; the HiFi-GAN V1 generator needs [256, 128, 16]" in sound(tmp_path, wrong, mel, status=1)
    half = split(weights, ".weight_g", ".weight_v")
    del half["conv_pre.weight_g"]
    assert "'conv_pre.weight_g' is missing" in sound(tmp_path, half, mel, status=1)
