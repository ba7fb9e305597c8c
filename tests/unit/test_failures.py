"""A sweep that fails shows why: the sentence that a job ended with, once, and where it stands."""

import os

from castmates.pipeline.failures import reasons


def log(place, text, age=0.0):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    os.utime(place, (1000 - age, 1000 - age))


def test_each_reason_is_told_once_with_its_first_log(tmp_path):
    sentence = "castmates: x.parquet: this is not a table."
    for name in ("b", "a", "c"):
        log(tmp_path / f"draw/{name}.log", f"a warning\n{sentence}\n")
    log(tmp_path / "bug.log", "Traceback (most recent call last):\n  File\nKeyError: 'x'\n")
    log(tmp_path / "fine.log", "a warning that a job gave that did not fail\n")
    log(tmp_path / "empty.log", "")
    log(tmp_path / "before.log", "castmates: what another sweep said.\n", age=1)
    assert reasons(tmp_path, since=1000) == (
        f"KeyError: 'x' ({tmp_path / 'bug.log'})\n{sentence} ({tmp_path / 'draw/a.log'} and 2 more)\n"
    )
    assert reasons(tmp_path, since=1001) == ""
    assert reasons(tmp_path / "nowhere") == ""


def test_many_reasons_are_counted(tmp_path):
    for number in range(7):
        log(tmp_path / f"{number}.log", f"castmates: reason {number}.")
    assert reasons(tmp_path, since=0).endswith(f"2 more reasons stand below {tmp_path}\n")
