"""Children that are run under SIGTERM: none is left, whenever it comes."""

import os
import signal
import subprocess

import pytest

from castmates.workloads import child


@pytest.fixture
def listening():
    before = {number: signal.getsignal(number) for number in child.SIGNALS}
    child.listen()
    yield
    child.listen()  # forgets what came
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def started(monkeypatch):
    """Asks ourselves to end amid the start of each child, which is then there and not yet known to who starts it."""
    made = []

    class Told(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            made.append(self)
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Told)
    yield made
    for process in made:
        process.kill()
        process.wait()


@pytest.mark.own_sigterm
@pytest.mark.parametrize("patience", [0, 10])
def test_a_signal_amid_the_start_leaves_no_child(listening, started, tmp_path, patience):
    with (tmp_path / "log").open("wb") as log, pytest.raises(child.Stopped):
        child.run(["sleep", "60"], log, patience=patience)
    assert [process.returncode for process in started] == [-signal.SIGTERM if patience else -signal.SIGKILL]


def test_the_status_and_both_outputs_are_the_childs(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        words = ["sh", "-c", "pwd; echo $A >&2; exit 7"]
        assert child.run(words, log, folder=tmp_path, environment={"A": "b", "PATH": os.environ["PATH"]}) == 7
    assert (tmp_path / "log").read_text() == f"{tmp_path}\nb\n"
