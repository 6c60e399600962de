import json
import time

import pytest

import myxtts


def test_a_report_is_that_of_the_program(program, corpus, tmp_path):
    program("prepare", corpus, "--json", tmp_path / "a.json", "--html", tmp_path / "a.html")
    printed = program("prepare", corpus).stdout
    report = myxtts.prepare(corpus)
    assert report == json.loads((tmp_path / "a.json").read_text())
    assert str(report).strip() == printed.strip()
    assert report.html == (tmp_path / "a.html").read_text() and report._repr_html_().startswith("<iframe srcdoc=")


def test_prepare_takes_settings_and_rejects_what_is_none(corpus, tmp_path):
    assert myxtts.prepare(corpus, deep=True, preset="vocos", batch_size=4)["accepted"] == 40
    with pytest.raises(myxtts.Error, match="did you mean"):
        myxtts.prepare(corpus, batchsize=4)
    with pytest.raises(myxtts.Error) as caught:
        myxtts.prepare(tmp_path / "nothing")
    assert caught.value.where == "corpus"


def slowly(seconds, count=100):
    for number in range(count):
        time.sleep(seconds)
        yield number


def test_a_slow_loader_of_any_kind_is_found(capsys):
    steps = []
    found = myxtts.diagnose(slowly(0.02), steps.append, batches=10)
    assert not found.healthy and found["cause"] == "data loading" and found["limiting_stage"] == "loading"
    assert found["input_wait_fraction"] > 0.5 and found["input_bound"] == "highly"
    assert found.verdict.startswith("Data loading limits: the consumer waits for data")
    assert len(steps) == 3 + 10 + 4 and steps[13:] == steps[:4]  # warm-up, observed, and the first ones again
    assert capsys.readouterr().out.strip() == str(found).strip() and found.verdict in str(found)


def test_a_loader_that_is_always_ready_is_not_blamed(capsys):
    found = myxtts.diagnose([1, 2, 3], lambda batch: time.sleep(0.02), batches=10, quiet=True)
    assert found["input_bound"] == "no" and found["limiting_stage"] == "consumer"
    assert found["headroom"] >= 1 and capsys.readouterr().out == ""


def test_pauses_that_come_in_a_rhythm_are_told_with_their_period():
    def pausing():
        for number in range(200):
            time.sleep(0.3 if number % 8 == 0 else 0)
            yield number

    found = myxtts.diagnose(pausing(), lambda batch: time.sleep(0.001), batches=40, quiet=True)
    assert found["cause"] == "periodic stalls" and found.verdict.startswith("The loader stalls")
    assert found["period_batches"] == pytest.approx(8, abs=0.5)


def test_workers_that_a_loader_has_are_named():
    class Loader:
        num_workers = 0

        def __iter__(self):
            return slowly(0.01)

    found = myxtts.diagnose(Loader(), batches=8, quiet=True)
    cores = len(__import__("os").sched_getaffinity(0))
    assert [(one["setting"], one["current"], one["proposed"]) for one in found["recommendations"]] == [("num_workers", "0", str(cores))]


def test_our_own_loader_is_judged_stage_by_stage_with_the_keys_of_the_command(program, corpus, tmp_path):
    program("diagnose", "bottleneck", "--train-data", corpus, "--batch-size", 4, "--num-batches", 8, "--consumer-ms", 1,
            "--device", "cpu", "--json", tmp_path / "a.json", status=None)
    expected = json.loads((tmp_path / "a.json").read_text())
    with myxtts.Loader(corpus, batch_size=4, device="cpu") as loader:
        found = myxtts.diagnose(loader, lambda batch: time.sleep(0.001), batches=8, quiet=True)
    assert list(found) == list(expected) and list(found["stages"]) == list(expected["stages"])
    assert found["stages"]["features"]["ms_per_batch"] > 0 and found["checks"]
    for part in ("What limits Loader", "Timeline of the stages", found.verdict[:20]):
        assert part in found.html
    assert found._repr_html_().startswith("<iframe srcdoc=")


def test_the_smallest_ring_can_be_diagnosed(corpus):
    with myxtts.Loader(corpus, batch_size=2, device="cpu", pipeline_buffer_size=2, auto_tune_performance=False) as loader:
        assert myxtts.diagnose(loader, lambda batch: None, batches=8, quiet=True)["batches"] == 8


def test_what_cannot_be_diagnosed_is_refused():
    with pytest.raises(myxtts.Error, match="at least 8"):
        myxtts.diagnose([1], batches=7)
    with pytest.raises(myxtts.Error, match="no batches left"):
        myxtts.diagnose([], batches=8)
    with pytest.raises(myxtts.Error, match="iterated again"):
        myxtts.diagnose(iter([1, 2, 3]), batches=8)
    with pytest.raises(ZeroDivisionError):
        myxtts.diagnose([1], lambda batch: 1 / 0, batches=8)
