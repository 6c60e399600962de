import subprocess

import pytest
from conftest import at_once


def test_help_and_version(myxtts):
    top = myxtts("--help").stdout

    def check(command):
        assert command in top
        assert "Usage" in myxtts(command, "--help").stdout

    at_once(check, ("prepare", "batches", "mel", "demo-data", "config", "completion"))
    assert myxtts("--version").stdout.startswith("myxtts ")


@pytest.mark.parametrize(
    "arguments, must_say",
    [
        ([], "subcommand"),
        (["preparr", "x"], "did you mean prepare?"),
        (["demo-data", "x", "--clisp", "3"], "did you mean --clips?"),
        (["demo-data"], "DIR is required"),
        (["demo-data", "x", "--clips", "0"], "--clips is 0"),
        (["demo-data", "x", "--language", "xx"], "--languages is 'xx'"),
        (["demo-data", "x", "--format", "aac"], "one of wav, flac, mp3, ogg"),
        (["prepare", "/nowhere"], "/nowhere is neither a folder nor a file"),
        (["batches"], "give --train-data"),
        (["mel", "/nowhere.wav", "x.npy"], "/nowhere.wav"),
        (["mel", "only-one"], "mel --help"),
        (["mel", "a", "b", "--preset", "hifigam"], "did you mean hifigan?"),
        (["--log-level", "loud", "config", "print"], "loud"),
        (["config", "print", "--batch-size", "x"], "data.batch_size is 'x' (flag --batch-size)"),
        (["bench", "step", "--batch-size", "zero"], "--batch-size = zero; see 'myxtts bench step --help'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(myxtts, arguments, must_say, tmp_path):
    assert must_say in myxtts(*arguments, status=2, cwd=tmp_path).stderr
    assert list(tmp_path.iterdir()) == []  # nothing was started


def test_completion_offers_commands_and_flags(myxtts):
    script = myxtts("completion", "bash").stdout

    def complete(*words):
        line = " ".join(f"'{word}'" for word in words)
        probe = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _myxtts; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", probe], capture_output=True, text=True, check=True).stdout.split()

    assert "demo-data" in complete("myxtts", "dem")
    assert "--clips" in complete("myxtts", "demo-data", "--cl")
    assert complete("myxtts", "config", "pr") == ["print"]
    assert myxtts("completion", "fish", status=2)


def test_include_that_points_the_wrong_way_fails(root, tmp_path):
    def check():
        return subprocess.run([root / "tools" / "check_layers", tmp_path], capture_output=True, text=True)

    for folder in ("base", "audio", "corpus", "model"):
        (tmp_path / folder).mkdir()
    (tmp_path / "audio" / "wav.h").write_text('#include "base/error.h"\n')
    (tmp_path / "model" / "voice.h").write_text("#include <torch/nn.h>\n")
    assert check().returncode == 0
    (tmp_path / "base" / "bad.h").write_text('#include "audio/wav.h"\n')
    (tmp_path / "corpus" / "bad.cpp").write_text("#include <torch/torch.h>\n")
    done = check()
    assert done.returncode == 1
    assert "'base' may not know 'audio'" in done.stdout and "may know libtorch" in done.stdout
