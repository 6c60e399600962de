"""bench/loss_curves.py: ours and the twin learn alike, from the same weights on the same batches."""
import json
import shutil
import struct
import types

import loss_curves
import numpy as np
import pytest
import torch
import xxhash
from conftest import BINARY
from safetensors.torch import load_file

STEPS, SEED = 12, 1


def test_dumped_batches_are_those_that_are_shown(myxtts, corpus, tmp_path):
    folder = tmp_path / "new" / "batches"
    myxtts("batches", "--train-data", corpus, "--batch-size", 4, "--num-batches", 3, "--start-batch", 1, "--device", "cpu", "--dump", folder, "--json", tmp_path / "shown.json")
    shown = json.loads((tmp_path / "shown.json").read_text())["batches"]
    assert sorted(file.name for file in folder.iterdir()) == [f"batch-{i:08}.safetensors" for i in (1, 2, 3)]
    for batch in shown:
        tensors = load_file(folder / f"batch-{batch['index']:08}.safetensors")
        assert list(tensors["tokens"].shape) == batch["shape"]["text"] and tensors["tokens"].dtype == torch.int32
        assert list(tensors["mel"].shape) == batch["shape"]["mel"] and tensors["mel"].dtype == torch.float32
        value = 0
        for name in ("tokens", "mel", "text_lengths", "mel_lengths"):
            value = xxhash.xxh64_intdigest(tensors[name].numpy().tobytes(), value)
        assert f"{value:016x}" == batch["hash"]


def test_a_folder_that_cannot_be_made_is_named(myxtts, corpus, tmp_path):
    (tmp_path / "file").write_text("")
    done = myxtts("batches", "--train-data", corpus, "--batch-size", 4, "--device", "cpu", "--dump", tmp_path / "file" / "batches", status=2)
    assert "--dump" in done.stderr and "file/batches" in done.stderr


class SameNoise(loss_curves.Twin):
    """Draws what src/train/train.cpp draws, on the CPU."""

    def draw(self, mel):
        seed = xxhash.xxh64_intdigest(struct.pack("<3Q", SEED, len(self.losses), 0), 0) >> 1
        generator = torch.Generator().manual_seed(seed)
        return torch.empty(mel.shape[0]).uniform_(0, 1, generator=generator), torch.empty(mel.shape).normal_(0, 1, generator=generator)


@pytest.fixture
def few_short_clips(corpus, tmp_path):
    """Three batches of two, short enough for a step in no time."""
    shortest = sorted((corpus / "wavs").iterdir(), key=lambda file: file.stat().st_size)[:6]
    folder = tmp_path / "short"
    (folder / "wavs").mkdir(parents=True)
    for file in shortest:
        shutil.copy(file, folder / "wavs")
    names = {file.stem for file in shortest}
    lines = [line for line in (corpus / "metadata.csv").read_text().splitlines() if line.split("|")[0] in names]
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_the_twin_learns_step_for_step_as_ours(few_short_clips, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = types.SimpleNamespace(program=BINARY, device="cpu", size="tiny", batch_size=2, learning_rate=1e-3, seed=SEED, corpus=str(few_short_clips))
    program = loss_curves.Program(options, tmp_path)
    lines = program.train("float", STEPS, loss_curves.FLOAT)
    assert lines[-1]["epoch"] > 0, "the batches of one epoch alone are compared"
    weights, mel = program.initial_voice()
    twin = SameNoise(options, weights, mel, 0)
    for batch, line in zip(program.batches(STEPS), lines):
        twin.step(batch, line["lr"])
    ours = [line["loss"] for line in lines]
    assert len(twin.losses) == STEPS and ours[-1] < 0.9 * ours[0], ours
    # Rounding alone at first; then steps of Adam make it larger.
    assert twin.losses[0] == pytest.approx(ours[0], rel=1e-5)
    assert twin.losses == pytest.approx(ours, rel=1e-3)


def noisy_curve(seed, bias=0.0):
    steps = np.arange(500)
    return list(1.2 + 2.5 * np.exp(-steps / 80) + np.random.default_rng(seed).normal(0, 0.08, 500) + bias)


def test_curves_that_differ_by_noise_agree_and_others_do_not():
    twins = [noisy_curve(seed) for seed in (1, 2, 3, 6, 7)]
    assert loss_curves.agreement([noisy_curve(4), noisy_curve(5), twins[0]], twins)["holds"]
    assert not loss_curves.agreement([noisy_curve(4, bias=0.08), noisy_curve(5), twins[0]], twins)["holds"]
    spike = noisy_curve(4)
    spike[200:225] = [loss + 0.2 for loss in spike[200:225]]
    assert not loss_curves.agreement([spike, noisy_curve(5), twins[0]], twins)["holds"]
    lost = noisy_curve(4)
    lost[300] = float("nan")
    assert not loss_curves.agreement([lost, noisy_curve(5), twins[0]], twins)["holds"]


def test_runs_are_equal_to_rounding_or_not():
    run = np.array(noisy_curve(1)[:100])
    assert loss_curves.pair_agreement(run, run, run)["holds"]
    assert loss_curves.pair_agreement(run, run, run * (1 + 5e-5))["holds"]
    assert loss_curves.pair_agreement(run, run * (1 + 1e-3), run * (1 - 2e-3))["holds"]
    assert not loss_curves.pair_agreement(run, run, run * (1 + 1e-3))["holds"]
    assert not loss_curves.pair_agreement(run, run, run * float("nan"))["holds"]
