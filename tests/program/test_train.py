"""Training, resuming and speaking, with the real binary on a small corpus."""
import fcntl
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import termios
import time
import wave

import numpy as np
import pytest
from conftest import BINARY, HANG_S
from safetensors import safe_open

CONFIG = "data: {text_tokens: characters}\ntraining: {checkpoint_every: 2, log_every: 2, validate_every: 4, learning_rate: 0.001}\n"


@pytest.fixture(scope="module")
def tiny(myxtts, tmp_path_factory):
    """A few short clips, and the arguments that train on them.
data:
  text_tokens: characters
"""
    folder = tmp_path_factory.mktemp("train")
    myxtts("demo-data", folder / "corpus", "--clips", 30, "--seed", 5)
    (folder / "config.yaml").write_text(CONFIG)
    return folder


def arguments(tiny, run, steps, *more):
    return ["train", "--train-data", tiny / "corpus", "--config", tiny / "config.yaml", "--checkpoint-dir", run, "--batch-size", 2,
            "--shape-buckets", 2, "--max-mel-frames", 200, "--max-steps", steps, *more]


def tensors(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def assert_same_weights(one, other):
    first, second = tensors(one), tensors(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value.tobytes() == second[name].tobytes(), name


@pytest.fixture(scope="module")
def whole(myxtts, tiny):
    """A run of twelve steps that nothing interrupted."""
    myxtts(*arguments(tiny, tiny / "whole", 12))
    return tiny / "whole"


def test_a_run_leaves_behind_what_is_promised(whole):
    for name in ("metrics.jsonl", "config.yaml", "vocabulary.json", "report.html", "best.safetensors", "step-00000012.safetensors",
                 "samples/alignment.png", "samples/spoken.wav"):
        assert (whole / name).stat().st_size > 0, name
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    assert [line["step"] for line in steps] == [2, 4, 6, 8, 10, 12]
    assert {"step", "epoch", "loss", "loss_prior", "loss_duration", "loss_flow", "lr", "grad_norm", "step_ms", "input_wait_ms", "gpu_busy",
            "captures", "retraces", "samples_per_s", "audio_s_per_s", "padding"} <= steps[0].keys()
    assert steps[-1]["retraces"] == 0
    for line in steps:  # pauses for validation and samples are no time of a step, and are taken off once
        assert line["step_ms"] > line["input_wait_ms"] >= 0 and line["samples_per_s"] * line["step_ms"] == pytest.approx(2 * 1000, rel=1e-3)
    assert abs(steps[0]["loss"] - sum(steps[0][key] for key in ("loss_prior", "loss_duration", "loss_flow"))) < 1e-4
    assert [line["step"] for line in lines if "validation_loss" in line] == [4, 8, 12]
    page = (whole / "report.html").read_text()
    assert "<svg" in page and "data:image/png" in page and "data:audio/wav" in page


def test_stock_tensorboard_reads_it(whole):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(whole / "tensorboard"), size_guidance={"images": 0, "audio": 0, "scalars": 0})
    events.Reload()
    tags = events.Tags()
    assert {"loss/total", "validation/total", "shapes/retraces"} <= set(tags["scalars"])
    assert [event.step for event in events.Scalars("loss/total")] == [2, 4, 6, 8, 10, 12]
    logged = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in logged if "loss" in line]
    assert np.allclose([event.value for event in events.Scalars("loss/total")], losses)
    assert set(tags["images"]) == {"alignment", "mel_true", "mel_spoken"}
    assert events.Images("alignment")[0].encoded_image_string.startswith(b"\x89PNG")
    assert events.Audio("spoken")[0].sample_rate == 22050


def test_stopped_and_resumed_it_ends_with_the_same_bits(myxtts, tiny, whole):
    """Also with another number of workers."""
    run = tiny / "stopped"
    for _ in range(20):
        process = subprocess.Popen([BINARY, *map(str, arguments(tiny, run, 12, "--num-workers", 1))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_steps(process, run, 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, err
        if not (run / "step-00000012.safetensors").exists():
            break
        shutil.rmtree(run)  # it was done before the signal came: once more
    assert "resumes from there" in out and "stopping after this step" in err
    done = myxtts(*arguments(tiny, run, 12, "--num-workers", 3))
    assert "resumed from" in done.stdout
    assert_same_weights(run / "step-00000012.safetensors", whole / "step-00000012.safetensors")
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines() if '"loss"' in line]
    assert steps == sorted(set(steps)) and steps[-1] == 12


def test_a_resumed_run_does_not_validate_sooner(myxtts, tmp_path):
    """An epoch is a few steps here, and in a run of 1000 at least 20 lie between validations."""
    myxtts("demo-data", tmp_path / "corpus", "--clips", 8, "--seed", 5)
    config = tmp_path / "config.yaml"
    config.write_text("data: {text_tokens: characters, val_share: 0.2}\ntraining: {checkpoint_every: 5, sample_every: 5000}\n")
    run = tmp_path / "run"
    train = ["train", "--train-data", tmp_path / "corpus", "--config", config, "--checkpoint-dir", run, "--batch-size", 2, "--shape-buckets", 1,
             "--max-mel-frames", 400, "--max-steps", 1000]
    for steps in (26, 46):
        process = subprocess.Popen([BINARY, *map(str, train)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_steps(process, run, steps)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANG_S) == 0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    validated = [line["step"] for line in lines if "validation_loss" in line]
    assert len(validated) >= 2 and min(np.diff(validated)) >= 20, validated


def wait_for_steps(process, run, steps):
    while process.poll() is None:
        if run.exists() and len(list(run.glob("step-*.safetensors"))) > 0:
            newest = max(int(re.findall(r"\d+", path.name)[0]) for path in run.glob("step-*.safetensors"))
            if newest >= steps - 1:
                return
        time.sleep(0.005)


def test_killed_again_and_again_it_ends_with_the_same_bits(tiny, whole):
    """At any moment, also while a checkpoint is written. MYXTTS_KILLS=20 for more of them."""
    run = tiny / "killed"
    chance = random.Random(int(os.environ.get("MYXTTS_KILL_SEED", 7)))
    kills = inside_writing = 0
    command = [BINARY, *map(str, arguments(tiny, run, 12))]
    while kills < int(os.environ.get("MYXTTS_KILLS", 4)) or inside_writing == 0:
        before = set(run.glob(".step-*.tmp"))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if kills % 2 == 0:
            time.sleep(chance.uniform(0.3, 2.2))
        else:  # a checkpoint that is being written has another name
            while process.poll() is None and not set(run.glob(".step-*.tmp")) - before:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.02))
        if process.poll() is None:
            process.kill()
            process.wait()
            kills += 1
            inside_writing += bool(set(run.glob(".step-*.tmp")) - before)
        else:  # it was done before: once more from an early checkpoint
            for path in run.glob("step-*.safetensors"):
                if path.name != "step-00000008.safetensors":
                    path.unlink()
    print(f"{inside_writing} of {kills} while a checkpoint was being written")
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert_same_weights(run / "step-00000012.safetensors", whole / "step-00000012.safetensors")
    assert not list(run.glob(".*.tmp"))


def test_a_full_disk_does_not_end_a_run(tiny):
    """The checkpoint that fits no more is named, and the one before it stays."""
    run = tiny / "full"
    # Room for the first steps' files alone: a later checkpoint is larger than any file may be.
    subprocess.run([BINARY, *map(str, arguments(tiny, run, 2))], check=True, capture_output=True, timeout=HANG_S)

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000_000, 50_000_000))

    done = subprocess.run([BINARY, *map(str, arguments(tiny, run, 8))], capture_output=True, text=True, timeout=HANG_S, preexec_fn=small_files)
    assert done.returncode == 1  # the last one is lost
    assert "the checkpoint of step 4 was not written" in done.stderr and "the run continues" in done.stderr
    assert "error: [train] the checkpoint of step 8" in done.stderr
    assert [path.name for path in run.glob("*.safetensors") if path.name.startswith("step")] == ["step-00000002.safetensors"]
    assert not list(run.glob(".*.tmp"))
    resumed = subprocess.run([BINARY, *map(str, arguments(tiny, run, 4))], capture_output=True, text=True, timeout=HANG_S)
    assert resumed.returncode == 0 and "step 2" in resumed.stdout


def test_another_voice_is_refused_and_reset_keeps_the_old(myxtts, tiny, whole):
    done = myxtts(*arguments(tiny, whole, 14, "--model-size", "small", "--log-level", "error"), status=2)
    assert "model.size tiny, this run small" in done.stderr
    done = myxtts(*arguments(tiny, whole, 14, "--mel-preset", "tacotron2", "--log-level", "error"), status=2)
    assert "tacotron2" in done.stderr
    run = tiny / "again"
    myxtts(*arguments(tiny, run, 2))
    done = myxtts(*arguments(tiny, run, 2, "--reset-training"))
    assert (tiny / "again.before-1" / "step-00000002.safetensors").exists()
    assert (run / "step-00000002.safetensors").exists() and "resumed" not in done.stdout


def test_gradients_that_stay_infinite_end_a_run_with_advice(myxtts, tiny, tmp_path):
    config = tmp_path / "wild.yaml"
    config.write_text("training: {log_every: 1, validate_every: 100, learning_rate: 10, warmup_steps: 0, skipped_steps_limit: 3, gradient_clip: 1e9}\n")
    done = myxtts("train", "--train-data", tiny / "corpus", "--config", config, "--checkpoint-dir", tmp_path / "run", "--batch-size", 2,
                  "--shape-buckets", 2, "--max-mel-frames", 200, "--max-steps", 60, "--log-level", "error", status=1)
    assert "3 updates in a row were skipped" in done.stderr and "--lr" in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["skipped"] == 3 and lines[-1]["grad_norm"] is None


def test_without_static_shapes_retraces_are_counted(myxtts, tiny, tmp_path):
    done = myxtts(*arguments(tiny, tmp_path / "run", 6, "--disable-static-shapes", "--json", tmp_path / "out.json"))
    assert "static shapes are off" in done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["retraces"] > 0


def test_what_is_chosen_or_on_trial_is_said(myxtts, tiny, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("enable_xla_compilation: false\nbatch_size: 2-4\n")
    done = myxtts("train", "--train-data", tiny / "corpus", "--config", config, "--optimization-level", "experimental", "--max-mel-frames", 200,
                  "--max-steps", 1, "--checkpoint-dir", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "experimental is the same as enhanced" in done.stderr
    assert "batch size 4 of 2-4: a step takes about" in done.stdout


def test_plain_operations_learn_what_fused_kernels_learn(myxtts, tiny, tmp_path):
    losses = []
    for fused in ("true", "false"):
        config = tmp_path / f"{fused}.yaml"
        config.write_text(f"training: {{enable_fused_kernels: {fused}, log_every: 1}}\n")
        folder = tmp_path / f"run-{fused}"
        done = myxtts("train", "--train-data", tiny / "corpus", "--config", config, "--max-mel-frames", 200, "--batch-size", 2, "--max-steps", 3,
                      "--checkpoint-dir", folder)
        assert done.returncode == 0, done.stderr
        losses.append([json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines() if '"loss"' in line])
    assert len(losses[0]) == 3
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def run_and_fail(*arguments):
    """A training that ends with exit status 1; warnings may come before the error."""
    done = subprocess.run([BINARY, "train", *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 1, done.stdout + done.stderr
    return done


def test_strict_shapes_end_a_run_at_the_first_batch_of_another_shape(tiny, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("strict_shapes: true\nlog_every: 1\n")
    done = run_and_fail("--train-data", tiny / "corpus", "--config", config, "--max-mel-frames", 200, "--batch-size", 2, "--max-steps", 8,
                        "--disable-static-shapes", "--checkpoint-dir", tmp_path / "run")
    failed = int(re.search(r"a batch of another shape at step (\d+)", done.stderr)[1])
    assert " instead of " in done.stderr
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()  # on a GPU the last one waits for its losses
    assert failed > 1 and [json.loads(line)["step"] for line in lines] == list(range(1, failed))


def test_eager_debug_trains_the_same(myxtts, tiny, tmp_path):
    losses = []
    for more in ([], ["--enable-eager-debug"]):
        folder = tmp_path / f"run{len(more)}"
        myxtts("train", "--train-data", tiny / "corpus", "--max-mel-frames", 200, "--batch-size", 2, "--max-steps", 2, "--checkpoint-dir", folder, *more)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        losses += [line["loss"] for line in lines if "loss" in line]
    assert len(losses) == 2 and losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_accumulation_and_a_validation_corpus(myxtts, tiny, tmp_path):
    done = myxtts(*arguments(tiny, tmp_path / "run", 4, "--gradient-accumulation-steps", 2, "--val-data", tiny / "corpus"))
    assert "validation loss" in done.stdout
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [2, 4]


def test_progress_shows_the_distortion_and_the_end(myxtts, tiny, tmp_path):
    end = r"ends about (\S+ )?\d\d:\d\d, [\w ]+ left"  # with a date before midnight
    lines = myxtts(*arguments(tiny, tmp_path / "plain", 6, "--no-progress")).stdout.splitlines()
    assert any(re.match(rf"step 2/6  loss [\d.]+  {end}  epoch ", line) for line in lines), lines
    assert any(re.match(rf"step 4: validation loss .*, cepstral distortion [\d.]+, the best so far; {end}$", line) for line in lines), lines
    # On a terminal, after a validation, in one line that is never wider than it.
    columns = 80
    main, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    done = subprocess.Popen([BINARY, *map(str, arguments(tiny, tmp_path / "terminal", 6))], stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(main, 4096):
            shown += part
    except OSError:  # the program has closed its end
        pass
    os.close(main)
    assert done.wait(timeout=HANG_S) == 0
    drawn = [line for line in shown.decode().split("\r\x1b[K") if line.startswith("training [")]
    assert drawn and max(map(len, drawn)) == columns
    assert any(re.match(rf"training \[[= ]{{10}}\] 4/6  loss [\d.]+  MCD [\d.]+  ends about ", line) for line in drawn), drawn


def samples(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float) / 32768


def test_it_speaks(myxtts, tiny, whole, tmp_path):
    say = ["synth", "--checkpoint", whole]
    known = set(json.loads((whole / "vocabulary.json").read_text())["symbols"])
    texts = [line.split("|")[2].lower() for line in (tiny / "corpus" / "metadata.csv").read_text().splitlines()]
    said = sorted((text for text in texts if set(text) <= known), key=len)
    short, long = said[0], said[-1]
    myxtts(*say, "--text", short, "--out", tmp_path / "one.wav")
    myxtts(*say, "--text", long, "--out", tmp_path / "two.wav")
    myxtts(*say, "--text", short, "--out", tmp_path / "again.wav")
    one, two = samples(tmp_path / "one.wav"), samples(tmp_path / "two.wav")
    assert (tmp_path / "one.wav").read_bytes() == (tmp_path / "again.wav").read_bytes()
    assert len(one) != len(two) or not np.array_equal(one, two)
    assert np.sqrt((one**2).mean()) > 1e-4
    myxtts(*say, "--text", short, "--speed", 0.5, "--out", tmp_path / "slow.wav")
    assert len(samples(tmp_path / "slow.wav")) > 1.4 * len(one)
    myxtts(*say, "--text-file", "-", "--out", tmp_path / "many.wav", input=f"{short}\n\n{long}\n")
    assert (tmp_path / "many-001.wav").exists() and (tmp_path / "many-002.wav").exists()
    assert not (tmp_path / "many-003.wav").exists()


def test_it_speaks_through_hifigan(myxtts, tiny, whole, tmp_path):
    """With random weights: what comes out is noise of the right length, and another file is refused."""
    from safetensors.torch import save_file
    from test_hifigan import random_weights

    known = set(json.loads((whole / "vocabulary.json").read_text())["symbols"])
    text = next(line.split("|")[2] for line in (tiny / "corpus" / "metadata.csv").read_text().splitlines() if set(line.split("|")[2].lower()) <= known)
    save_file(random_weights(), tmp_path / "vocoder.safetensors")
    say = ["synth", "--checkpoint", whole, "--text", text]
    myxtts(*say, "--out", tmp_path / "plain.wav")
    myxtts(*say, "--out", tmp_path / "vocoder.wav", "--vocoder", tmp_path / "vocoder.safetensors")
    plain, vocoder = samples(tmp_path / "plain.wav"), samples(tmp_path / "vocoder.wav")
    assert len(plain) == len(vocoder) and len(plain) % 256 == 0 and not np.allclose(plain, vocoder)
    done = myxtts(*say, "--out", tmp_path / "x.wav", "--vocoder", whole / "best.safetensors", status=2)
    assert "is a voice, no vocoder" in done.stderr


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_a_voice_of_phonemes_is_the_default_and_takes_any_punctuation(myxtts, tiny, tmp_path):
    myxtts("train", "--train-data", tiny / "corpus", "--batch-size", 2, "--max-steps", 1, "--checkpoint-dir", tmp_path / "run")
    known = json.loads((tmp_path / "run" / "vocabulary.json").read_text())["symbols"]
    assert "ˈ" in known and "." in known and ";" not in known
    assert "text_tokens: phonemes" in (tmp_path / "run" / "config.yaml").read_text()
    for name, text in {"known": "water, cloud.", "unknown": "water; cloud!"}.items():
        myxtts("synth", "--checkpoint", tmp_path / "run", "--text", text, "--out", tmp_path / f"{name}.wav")
    assert (tmp_path / "known.wav").read_bytes() == (tmp_path / "unknown.wav").read_bytes()


def test_what_it_cannot_speak_is_said(myxtts, whole, tmp_path):
    out = tmp_path / "x.wav"
    assert "U+4E2D" in myxtts("synth", "--checkpoint", whole, "--text", "中", "--out", out, status=2).stderr
    assert "nothing to say" in myxtts("synth", "--checkpoint", whole, "--text", " ", "--out", out, status=2).stderr
    assert "--checkpoint" in myxtts("synth", "--text", "a", "--out", out, status=2).stderr
    assert "--text" in myxtts("synth", "--checkpoint", whole, "--out", out, status=2).stderr
    assert "--speed" in myxtts("synth", "--checkpoint", whole, "--text", "a", "--out", out, "--speed", 0, status=2).stderr
    junk = tmp_path / "junk.safetensors"
    junk.write_bytes(b"not a checkpoint")
    assert "junk" in myxtts("synth", "--checkpoint", junk, "--text", "a", "--out", out, status=2).stderr
    assert not out.exists()


def test_a_corpus_must_be_there(myxtts, tmp_path):
    assert "--train-data" in myxtts("train", status=2).stderr
    assert "nowhere" in myxtts("train", "--train-data", tmp_path / "nowhere", status=2).stderr
