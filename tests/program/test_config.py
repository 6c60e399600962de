import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import BINARY

OLD = sorted((pathlib.Path(__file__).parents[1] / "data" / "old_configs").glob("*.yaml"))
RENAMED = {"use_tf_native_loading": "use_native_loading", "enable_xla_compilation": "enable_fused_kernels"}


@pytest.mark.parametrize("path", OLD, ids=lambda p: p.stem)
def test_every_config_of_the_old_system_loads_and_each_key_names_its_line(myxtts, tmp_path, path):
    out = tmp_path / "out.json"
    myxtts("config", "print", "--config", path, "--json", out)
    printed = {key: entry for section in json.loads(out.read_text()).values() for key, entry in section.items()}
    set_keys = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        key, _, value = line.split("#")[0].strip().partition(":")
        if value.strip():
            set_keys += 1
            entry = printed[RENAMED.get(key, key)]
            assert entry == {"value": value.strip(), "source": f"file {path}:{number}"}
    assert set_keys > 0
    assert sum(entry["source"].startswith("file") for entry in printed.values()) == set_keys


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    "yaml, must_say",
    [
        ("data:\n  bacth_size: 16\n", "did you mean data.batch_size?"),
        ("data:\n  batch_size: sixteen\n", "data.batch_size is 'sixteen'"),
        ("data:\n  batch_size: -16\n", "data.batch_size is '-16'"),
        ("", "holds no settings"),
        ("# only a comment\n", "holds no settings"),
        (BOMB, "a0 is not a setting"),
        ("data:\n  batch_size: &a [*a]\n", "batch_size"),
        ("batch_size: " + "[" * 5000 + "\n", "not YAML"),
        ("- a\n- list\n", "holds no settings"),
        ("data: {batch_size: 1e99}\n", "batch_size"),
        ("\x00\x01\x02", "config"),
        ("? [complex, key]\n: 1\n", "not a plain word"),
        ("mel_presets: 3\n", "mel_presets"),
    ],
)
def test_a_wrong_file_is_one_sentence(myxtts, tmp_path, yaml, must_say):
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml)
    done = myxtts("config", "print", "--config", path, status=2)
    assert must_say in done.stderr


def test_a_missing_file_and_a_folder_are_named(myxtts, tmp_path):
    assert "nowhere.yaml" in myxtts("config", "print", "--config", tmp_path / "nowhere.yaml", status=2).stderr
    assert str(tmp_path) in myxtts("config", "print", "--config", tmp_path, status=2).stderr


def test_every_setting_has_a_source_and_a_meaning(myxtts):
    keys = myxtts("config", "keys").stdout
    for line in myxtts("config", "print", "--preset", "rtx4090", "--lr", "3e-4").stdout.splitlines():
        if line.startswith("  "):
            key, _, source = line.split(maxsplit=2)
            assert source.split()[0] in ("default", "preset", "flag")
            assert f".{key}" in keys
        else:
            assert line in ("data:", "model:", "training:")


def test_flags_of_the_contract_exist(myxtts):
    shown = myxtts("config", "print", "--help").stdout
    for flag in """--config --train-data --val-data --checkpoint-dir --epochs --max-steps --batch-size --num-workers --lr
        --model-size --optimization-level --enable-static-shapes --pad-to-fixed-length --disable-static-shapes
        --max-text-length --max-mel-frames --shape-buckets --data-gpu --model-gpu --buffer-size --model-start-delay
        --prefetch-to-gpu --no-prefetch-to-gpu --gradient-accumulation-steps --tensorboard-log-dir --device --seed
        --enable-eager-debug""".split():
        assert flag in shown, flag
    printed = myxtts("config", "print", "--disable-static-shapes", "--buffer-size", 9, "--model-gpu", 1).stdout
    for expected in ("pad_to_fixed_length false flag", "pipeline_buffer_size 9 flag", "model_gpu 1 flag"):
        assert expected in " ".join(printed.split())


def make_reference(root, *arguments):
    program = {**os.environ, "MYXTTS": str(BINARY)}
    return subprocess.run([root / "tools" / "make_reference", *arguments], env=program, capture_output=True, text=True)


def test_the_reference_pages_are_what_the_program_prints(root):
    done = make_reference(root, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stale_page_is_named_and_can_be_rewritten(root, tmp_path):
    shutil.copytree(root / "docs", tmp_path / "docs")
    (tmp_path / "tools").mkdir()
    shutil.copy(root / "tools" / "make_reference", tmp_path / "tools")
    page = tmp_path / "docs" / "fa" / "configuration.md"
    fresh = page.read_text()
    row = "| {0}`shape_buckets`{1} | {0}`--shape-buckets`{1} | {0}`12`{1} |".format('<span dir="ltr">', "</span>")
    assert row in fresh
    page.write_text(fresh.replace(row, "| `shape_buckets` | | `11` |"))
    done = make_reference(tmp_path, "--check")
    assert done.returncode == 1 and done.stdout.startswith("docs/fa/configuration.md is stale")
    assert make_reference(tmp_path).returncode == 0
    assert page.read_text() == fresh


def test_the_keys_of_a_command_are_the_flags_of_its_help(myxtts):
    for name, command in {"prepare": ["prepare"], "batches": ["batches"], "bench": ["bench", "loader"]}.items():
        shown = myxtts(*command, "--help").stdout
        flags = {word for word in shown[shown.index("Data:") :].replace(",", " ").split() if word.startswith("--")}
        keys = myxtts("config", "keys", "--command", name).stdout
        listed = {word.strip(",;") for word in keys.split() if word.startswith("--")} - {"--list`"}
        assert listed == flags - {"--list`", "--help."}, name
    assert "did you mean" in myxtts("config", "keys", "--comand", "train", status=2).stderr
    assert "--command" in myxtts("config", "keys", "--command", "synth", status=2).stderr
