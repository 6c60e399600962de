"""Which mode the program chooses and what it says about it, on a machine that may have no GPU."""
import json

import pytest


def test_the_start_up_lines_name_everything_that_was_chosen(myxtts, corpus):
    done = myxtts("bench", "loader", "--train-data", corpus, "--repeats", 1, "--batch-size", 4, "--device", "cpu", "--buffer-size", 7)
    for line in ("mode: CPU", "buffer: 7 batches in memory", "delay: none", "static shapes: on, 4x", "loader: native, ", "tuned: num_workers "):
        assert line in done.stdout
    fixed = myxtts("batches", "--train-data", corpus, "--batch-size", 4, "--device", "cpu", "--num-workers", 3, "--log-level", "debug")
    assert "loader: native, 3 workers" in fixed.stdout and "tuned: num_workers" not in fixed.stdout
    assert "mode:" not in myxtts("batches", "--train-data", corpus, "--batch-size", 4, "--device", "cpu").stdout


@pytest.mark.parametrize("flags, key", [
    (["--data-gpu", 900], "data.data_gpu"), (["--model-gpu", 900], "data.model_gpu"), (["--data-gpu", 900, "--model-gpu", 901], "data.data_gpu"),
])
def test_gpus_that_cannot_be_used_as_asked_are_a_warning_or_an_error(myxtts, corpus, tmp_path, flags, key):
    common = ["batches", "--train-data", corpus, "--batch-size", 4, "--num-batches", 2]
    out = tmp_path / "out.json"
    myxtts(*common, "--json", tmp_path / "plain.json")
    done = myxtts(*common, *flags, "--json", out)
    assert done.stderr.count("warning:") == 1 and key in done.stderr
    assert json.loads(out.read_text()) == json.loads((tmp_path / "plain.json").read_text())
    (tmp_path / "strict.yaml").write_text("data: {strict_devices: true}\n")
    strict = myxtts(*common, *flags, "--config", tmp_path / "strict.yaml", status=2)
    assert key in strict.stderr and strict.stdout == ""


def test_the_switches_do_not_change_a_batch_on_the_cpu(myxtts, corpus, tmp_path):
    common = ["batches", "--train-data", corpus, "--batch-size", 4, "--num-batches", 3, "--device", "cpu", "--json"]
    myxtts(*common, tmp_path / "plain.json")
    want = json.loads((tmp_path / "plain.json").read_text())
    for key in ("prefetch_to_gpu", "enhanced_gpu_prefetch", "optimize_cpu_gpu_overlap", "auto_tune_performance", "use_native_loading"):
        (tmp_path / "off.yaml").write_text(f"data: {{{key}: false}}\n")
        myxtts(*common, tmp_path / "off.json", "--config", tmp_path / "off.yaml")
        assert json.loads((tmp_path / "off.json").read_text()) == want, key
