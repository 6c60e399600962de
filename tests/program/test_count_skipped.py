"""tools/count_skipped on what GoogleTest writes."""
import subprocess

from conftest import ROOT


def count(folder, status=0):
    done = subprocess.run([ROOT / "tools" / "count_skipped", folder], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def write(folder, name, reasons):
    """One test for each; None ran."""
    cases = "".join(f'<testcase name="t{i}">' + (f'<skipped message="a.cpp:{i}&#x0A;{reason}"><![CDATA[a.cpp:{i}\n{reason}]]></skipped>' if reason else "") + "</testcase>"
                    for i, reason in enumerate(reasons))
    (folder / f"test_{name}.xml").write_text(f'<?xml version="1.0"?><testsuites><testsuite name="S">{cases}</testsuite></testsuites>')


def test_gpu_tests_are_counted_over_all_executables_and_other_reasons_apart(tmp_path):
    write(tmp_path, "model", [None, "no GPU", "no GPU of the Hopper kind", "no GPU"])
    write(tmp_path, "loader", ["no GPU here", None])
    write(tmp_path, "corpus", [None, "python3 is not here"])
    assert count(tmp_path).splitlines() == [
        "8 unit tests in 3 executables, 5 of them skipped",
        "SKIPPED: 4 GPU tests in 2 executables, for want of a GPU (compiled where nvcc was found): model 3, loader 1",
        "SKIPPED: 1 test in 1 executable, python3 is not here: corpus 1"]


def test_nothing_skipped_is_one_line(tmp_path):
    write(tmp_path, "base", [None, None])
    assert count(tmp_path) == "2 unit tests in 1 executable, 0 of them skipped\n"


def test_a_folder_without_results_is_an_error(tmp_path):
    assert "no test_*.xml" in count(tmp_path, status=1)
