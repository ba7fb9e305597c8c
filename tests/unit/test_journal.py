"""Whatever is set through the journal ends as it was, wherever the process or the disk gave up."""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.linux.owner import INITIAL_PID_SPACE, born_of, is_gone, myself
from castmates.machine import journal as journals
from castmates.machine.journal import KINDS, Change, Journal, Kind

DEAD = replace(myself(), pid=2**22 + 1)  # beyond the kernel's highest number
FORMER = {"a": "one", "b": "one", "c": "two"}
VALUES = st.sampled_from(["one", "two", "three"])


class Crash(BaseException):
    """The process ends here."""


@contextmanager
def machine():
    """A folder with three knobs, in memory, where syncing costs nothing."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        for name, value in FORMER.items():
            (folder / name).write_text(value)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def here():
    with machine() as folder:
        yield folder


def values(folder):
    return {name: KINDS["file"].read(folder / name) for name in FORMER}


def change(folder, name, new, kind="file"):
    return Change(name, kind, str(folder / name), KINDS["file"].read(folder / name), new)


def set_all(folder, new="three", owner=DEAD):
    journal = Journal(folder / "state", owner)
    assert journal.apply([change(folder, name, new) for name in FORMER], "a test") == {}
    return journal


def heal(folder):
    return Journal(folder / "state").restore(lambda entry: entry.stale)


def how(undone):
    return {one.entry.change.knob: one.how for one in undone}


def test_what_a_dead_process_set_is_put_back_once(here):
    journal = set_all(here)
    assert values(here) == dict.fromkeys(FORMER, "three")
    assert "a (" in str(journal.entries()[0])
    assert "from 'one' to 'three' for a test" in str(journal.entries()[0])
    assert how(heal(here)) == dict.fromkeys(FORMER, "restored")
    assert values(here) == FORMER
    assert heal(here) == []
    assert journal.path.read_bytes() == b""


def test_what_a_living_process_set_is_its_own_affair(here):
    mine = set_all(here, owner=None)
    assert heal(here) == []
    assert values(here) == dict.fromkeys(FORMER, "three")
    mine.restore_mine()
    assert values(here) == FORMER


def test_what_somebody_else_has_changed_since_is_left_and_told(here):
    set_all(here)
    (here / "a").write_text("theirs\n")
    (here / "b").write_text(FORMER["b"])
    (here / "c").unlink()
    undone = heal(here)
    assert how(undone) == {"a": "foreign", "b": "already", "c": "gone"}
    assert (here / "a").read_text() == "theirs\n"
    assert "'theirs' by now" in next(str(one) for one in undone if one.how == "foreign")
    assert heal(here) == []


def test_after_a_restart_nothing_is_written(here):
    set_all(here, owner=replace(DEAD, boot="another"))
    assert set(how(heal(here)).values()) == {"restarted"}
    assert values(here) == dict.fromkeys(FORMER, "three")
    assert heal(here) == []


def test_what_cannot_be_put_back_stays_in_the_journal(here, monkeypatch):
    def refuse(path, value):
        raise PermissionError(1, "Operation not permitted")

    set_all(here)
    real = KINDS["file"]
    monkeypatch.setitem(KINDS, "file", Kind(real.read, refuse))
    assert [one.how for one in heal(here)] == ["failed"] * 3
    monkeypatch.setitem(KINDS, "file", Kind(real.read, lambda *_: None))
    assert "still reports" in heal(here)[0].finding
    monkeypatch.delitem(KINDS, "file")
    assert "does not know what 'file' is" in heal(here)[0].finding
    monkeypatch.setitem(KINDS, "file", real)
    assert len(heal(here)) == 3
    assert values(here) == FORMER


def test_a_refused_change_leaves_no_trace(here, monkeypatch):
    real = KINDS["file"]

    def stubborn(path, value):
        real.write(path, {"three": "odd"}.get(value, value))

    monkeypatch.setitem(KINDS, "stubborn", Kind(real.read, stubborn))
    journal = Journal(here / "state")
    refused = journal.apply([change(here, "a", "three", "stubborn"), change(here, "b", "three")], "a test")
    assert "reports 'odd'" in str(refused[str(here / "a")])
    assert values(here) == FORMER | {"b": "three"}
    assert [entry.change.knob for entry in journal.entries()] == ["b"]


def test_a_journal_that_cannot_be_written_stops_the_change(here, monkeypatch):
    (here / "state").write_text("not a folder")
    with pytest.raises(CastmatesError, match="so nothing is changed"):
        set_all(here)
    (here / "state").unlink()
    set_all(here, "two")
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)  # as on a full disk
    with pytest.raises(CastmatesError, match="No space left on device"):
        Journal(here / "state").apply([change(here, "a", "three")], "a test")
    assert values(here) == dict.fromkeys(FORMER, "two")
    heal(here)
    assert values(here) == FORMER


def test_a_journal_that_others_may_write_is_not_believed(here):
    journal = set_all(here)
    journal.path.chmod(0o666)
    assert journal.entries() == []
    assert heal(here) == []
    with pytest.raises(CastmatesError, match="can be written by others"):
        set_all(here, "two")
    journal.path.chmod(0o644)
    aside = journal.path.rename(here / "elsewhere")
    journal.path.symlink_to(aside)
    assert journal.entries() == []


def test_torn_at_every_byte_it_still_puts_everything_back(here):
    """A change is made when its line is whole, and its end is written when it has been taken back."""
    journal = set_all(here)
    opened = journal.path.read_bytes()
    lines = opened.splitlines(keepends=True)
    closing = b'{"close": 3, "how": "restored"}\n'
    for cut in range(len(opened) + len(closing) + 1):
        whole = (opened + closing)[:cut].count(b"\n")
        made = min(whole, len(lines)) if cut <= len(opened) else 2
        for number, (name, former) in enumerate(FORMER.items()):
            (here / name).write_text("three" if number < made else former)
        journal.path.write_bytes((opened + closing)[:cut])
        if cut % 2:  # someone goes on with what is left of the journal
            assert journal.apply([change(here, "b", "two")], "more") == {}
        undone = heal(here)
        assert values(here) == FORMER, cut
        assert not {"foreign", "failed"} & set(how(undone).values()), cut
        assert journal.entries() == []


def test_rubbish_is_no_entry(here):
    journal = set_all(here)
    good = journal.path.read_bytes()
    strange = [b"\0\0\0", b"[]", b"7", b"{}", b'{"open": 1}', b'{"close": [1]}', b'{"open":9,"change":{},"owner":{}}']
    journal.path.write_bytes(b"\n".join([*strange, good]))
    assert len(journal.entries()) == 3
    heal(here)
    assert values(here) == FORMER


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(sorted(FORMER)), VALUES, st.sampled_from(["no", "before", "after"])),
        st.tuples(st.just("restore"), st.integers(0, 3)),
        st.tuples(st.just("tear"), st.integers(1, 60)),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(OPERATIONS)
def test_any_sequence_of_changes_and_crashes_ends_as_it_began(operations):
    real, fuse = KINDS["file"], {"left": -1, "when": "before"}

    def write(path, value):
        fuse["left"] -= 1
        if fuse["left"] == -1 and fuse["when"] == "before":
            raise Crash
        real.write(path, value)
        if fuse["left"] == -1:
            raise Crash

    with machine() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "frail", Kind(real.read, write))
        for operation in operations:
            if operation[0] == "set":
                _, name, value, crash = operation
                fuse |= {"left": -9 if crash == "no" else 0, "when": crash}
                if values(folder)[name] != value:
                    with suppress(Crash):
                        Journal(folder / "state", DEAD).apply([change(folder, name, value, "frail")], "a test")
                    if crash != "no":
                        fuse["left"] = -9
            elif operation[0] == "restore":
                fuse |= {"left": operation[1], "when": "after"}
                with suppress(Crash):
                    heal(folder)
            elif (folder / "state/journal").exists():
                with (folder / "state/journal").open("ab") as file:
                    file.write((b'{"open": 99, "change": {"knob": "a", "kind": "file", "target": "/x"')[: operation[1]])
        fuse["left"] = -9
        assert not {"foreign", "failed"} & set(how(heal(folder)).values())
        assert values(folder) == FORMER
        assert heal(folder) == []


def test_entries_say_who_when_and_for_what(here):
    line = json.loads(set_all(here).path.read_text().splitlines()[0])
    assert line["owner"]["pid"] == DEAD.pid
    assert line["owner"]["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert line["purpose"] == "a test"
    assert line["at"]


def test_the_journal_lies_where_it_outlives_a_restart(monkeypatch, tmp_path):
    monkeypatch.delenv("CASTMATES_STATE", raising=False)
    monkeypatch.setattr(journals, "MACHINE_WIDE", tmp_path / "lib" / "castmates")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Journal().path == tmp_path / "lib/castmates/journal"
    monkeypatch.setattr(os, "access", lambda path, _: "home" in str(path))
    (tmp_path / "home").mkdir()
    (tmp_path / "lib").mkdir()
    assert Journal().path == tmp_path / "home/.local/state/castmates/journal"
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path / "chosen"))
    assert Journal().path == tmp_path / "chosen/journal"


def test_a_home_that_may_not_be_looked_into_is_no_place(monkeypatch, tmp_path):
    closed = tmp_path / "home" / ".local/state/castmates"

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    assert journals._may_write(closed)
    monkeypatch.setattr(Path, "exists", refuse)  # as for a plain user below a folder of mode 700; root may look
    assert not journals._may_write(closed)


def test_a_process_is_gone_when_it_ended_or_its_number_is_anothers():
    sleeper = subprocess.Popen(["sleep", "60"])
    me = myself()
    try:
        its = replace(me, pid=sleeper.pid, born=born_of(sleeper.pid))
        assert not is_gone(me)
        assert not is_gone(its)
        assert is_gone(replace(its, born=its.born - 1))
        assert is_gone(replace(its, boot="another"))
        assert is_gone(replace(its, space=1)) == (me.space == INITIAL_PID_SPACE and os.geteuid() == 0)
        sleeper.kill()
        os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(its)  # a zombie
    finally:
        sleeper.kill()
        sleeper.wait()
