"""A folder into which launches are written, one over the other, and in which writing may end at any moment."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pandas as pd
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from castmates.errors import CastmatesError
from castmates.files import memory_folder, sha256_of
from castmates.results.columns.launch import LAUNCH_TABLES, RECORD, table_file
from castmates.results.columns.ranges import RANGES
from castmates.results.records import BROKEN, record_or_why, table_digests
from castmates.runner import record
from castmates.runner.outcome import Measured
from tests.unit.simulated.machine import BESIDE, LEAD, MS, SECOND, Machine, Script, launch_of

TABLES = {table_file(name) for name in LAUNCH_TABLES}
DEAD = 4194305  # beyond the kernel's highest number
STEPS = 40  # of writing a launch, at least


class Killed(BaseException):
    """The process ends here."""


@cache
def outcome_of(number: int) -> Measured:
    """The same launch, measured again: once it fails."""
    dies = 1.3 * SECOND if number == 2 else float("inf")
    scripts = {LEAD: Script(step=(1 + number) * MS, dies=dies), BESIDE: Script(step=3 * MS)}
    return Machine(launch_of(rounds=1), scripts).measure()


def one_launch_only(folder: Path) -> None:
    """Check that a record, where there is one, stands beside its own tables alone, and all of them."""
    if not (folder / RECORD).exists():
        return
    assert record_or_why(folder / RECORD)["status"] != BROKEN
    digests = table_digests(folder)
    there = {file.name for file in folder.glob("*.parquet")}
    assert there == digests.keys() - {RECORD} == TABLES, "tables that are not of this launch, or too few"
    for name in there:
        assert sha256_of(folder / name) == digests[name], f"{name} is another launch's"


@contextmanager
def at_each_step(look: Callable[[], None]) -> Iterator[None]:
    """Look before whatever changes names of files, and when one is complete on the disk."""

    def before(really: Callable[..., object]) -> Callable[..., object]:
        def first_look(*words: object, **more: object) -> object:
            look()
            return really(*words, **more)

        return first_look

    with ExitStack() as patches:
        for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync")):
            patches.enter_context(patch.object(owner, name, before(getattr(owner, name))))
        yield


class Folder(RuleBasedStateMachine):
    """Any launches, written whole or in part."""

    @initialize()
    def made(self) -> None:
        self.place = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.folder = self.place / "launch"

    def teardown(self) -> None:
        shutil.rmtree(self.place)

    @rule(number=st.integers(0, 2))
    def written(self, number: int) -> None:
        """Look at every step of it, as somebody might who reads, or after a power cut."""
        outcome = outcome_of(number)
        with at_each_step(lambda: one_launch_only(self.folder)):
            record.write(outcome, self.folder)
        assert {file.name for file in self.folder.iterdir()} == TABLES | {RECORD}, "something is left"
        rates = [window.total(name).rate for window in outcome.windows for name in window.scene.active]
        assert list(pd.read_parquet(self.folder / "windows.parquet")["rate"]) == rates
        assert record_or_why(self.folder / RECORD)["status"] == outcome.status

    @rule(number=st.integers(0, 2), steps=st.integers(1, STEPS), full=st.booleans())
    def broken_off(self, number: int, steps: int, full: bool) -> None:
        """The disk is full at some step, or the process is killed there."""
        left = [steps]

        def end() -> None:
            left[0] -= 1
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device") if full else Killed

        with at_each_step(end):
            try:
                record.write(outcome_of(number), self.folder)
            except (CastmatesError, Killed):
                assert not left[0] or left[0] < 0

    @rule(name=st.sampled_from([RECORD, "windows.parquet", "samples.parquet"]))
    def half_a_file_is_left(self, name: str) -> None:
        """As a process leaves it that was killed while it wrote."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / f".{name}.{DEAD}").write_text("half")

    @rule()
    def killed_after_its_ranges(self) -> None:
        """As an earlier launch leaves them that kept what members annotate, and came no further."""
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / RECORD).exists():
            pd.DataFrame(columns=list(RANGES)).to_parquet(self.folder / table_file("ranges"))

    @invariant()
    def record_and_tables_are_of_one_launch(self) -> None:
        one_launch_only(self.folder)


TestFolder = Folder.TestCase
# Smaller examples would take minutes to find, and tell no more.
TestFolder.settings = settings(max_examples=12, stateful_step_count=6, phases=[Phase.explicit, Phase.generate])


def test_a_record_never_stands_beside_another_launchs_tables(tmp_path):
    """Not at any step of writing the second launch, so that nobody finds it so who reads then, or after a kill."""
    record.write(outcome_of(0), tmp_path)
    looks = []
    with at_each_step(lambda: looks.append(one_launch_only(tmp_path))):
        record.write(outcome_of(1), tmp_path)
    assert len(looks) > STEPS


def test_the_windows_of_a_measured_launch_say_when_it_began(tmp_path):
    record.write(outcome_of(0), tmp_path)
    began = datetime.fromisoformat(record_or_why(tmp_path / RECORD)["started"]).timestamp()
    (told,) = set(pd.read_parquet(tmp_path / "windows.parquet")["started"])
    assert 0 <= told - began < 1  # the record has whole seconds
