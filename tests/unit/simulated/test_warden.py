"""The warden's two ends over a pipe in memory: whenever the runner dies, nothing is left of what it had made."""

import json
import sys
import tempfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from castmates.files import memory_folder
from castmates.machine.journal import KINDS, Change, Journal
from castmates.runner.cleanup import leftovers, outliving
from castmates.runner.cleanup.warden import Warden

THINGS = st.lists(st.sampled_from(["file", "folder", "orphan", "knob", "nothing"]), max_size=6)


class Pipe(BytesIO):
    """What was written stays there when the writer closes it."""

    def close(self) -> None:
        pass


@dataclass
class Runner:
    """A runner that announces each thing before it makes it."""

    folder: Path

    def __post_init__(self) -> None:
        self.pipe = Pipe()
        self.warden = Warden(SimpleNamespace(poll=lambda: 0, pid=2**22 + 1), self.pipe)
        self.journal = Journal(self.folder / "state")
        self.knobs, self.orphans, self.others = [], [], []

    def steps_of(self, number: int, thing: str) -> list:
        """What it does for this thing, one after the other."""
        place = self.folder / f"{number}"
        if thing == "knob":
            place.write_text("before")
            self.knobs.append(place)
            change = Change("knob", "file", str(place), "before", "during")
            return [lambda: self.warden.guard_journal(self.journal), lambda: self.journal.apply([change], "a test")]
        if thing == "orphan":
            self.orphans.append(place)
            return [lambda: self.warden.guard_orphan(place), lambda: place.write_text("x")]
        self.others.append(place)
        make = {"file": lambda: place.write_text("x"), "folder": lambda: (place / "within").mkdir(parents=True)}
        return [lambda: self.warden.guard_path(place), make.get(thing, lambda: None)]


@given(THINGS, st.integers(0, 12), st.booleans(), st.booleans())
def test_whenever_the_runner_dies_nothing_is_left(things, last, torn, released):
    with tempfile.TemporaryDirectory(dir=memory_folder()) as place:
        folder = Path(place)
        (folder / "a stranger's").write_text("x")
        runner = Runner(folder)
        steps = [step for number, thing in enumerate(things) for step in runner.steps_of(number, thing)]
        released &= last >= len(steps)
        for step in steps[:last]:
            step()
        if released:
            runner.warden.release()
            runner.warden.release()
        elif torn:  # it died in the middle of a line
            runner.pipe.write(json.dumps(["path", str(folder / "a stranger's")]).encode()[:-2])
        left_orphans = [orphan for orphan in runner.orphans if orphan.exists()]
        unannounced = outlived(runner)
        assert unannounced == ([] if released else [4321])
        assert not any(other.exists() for other in runner.others)
        assert [KINDS["file"].read(knob) for knob in runner.knobs] == ["before"] * len(runner.knobs)
        assert runner.journal.entries() == []
        assert [orphan for orphan in runner.orphans if orphan.exists()] == (left_orphans if released else [])
        assert (folder / "a stranger's").exists()


def outlived(runner: Runner) -> list[int]:
    """Let the other end go on alone; whose leavings it looked for that were never announced."""
    unannounced: list[int] = []
    stdin = SimpleNamespace(buffer=BytesIO(runner.pipe.getvalue()))
    with (
        patch.object(sys, "stdin", stdin),
        patch.object(leftovers, "bearers", lambda _: []),  # nobody else knows these paths, and /proc is long
        patch.object(leftovers, "clean_up_unannounced", unannounced.append),
    ):
        outliving.watch(4321)
    return unannounced
