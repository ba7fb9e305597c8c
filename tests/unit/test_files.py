"""Files that appear whole or not at all, and the message where they cannot."""

import errno
import re

import pytest

from castmates.errors import CastmatesError
from castmates.files import replace, replace_text, writing
from castmates.report.figures import texts
from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.study import frame
from castmates.results.tables import write_table


def test_what_failed_first_is_told_and_not_that_its_remains_could_not_be_removed(tmp_path):
    def fail(temporary):
        temporary.unlink()
        temporary.mkdir()  # which cannot be removed as a file
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        replace(tmp_path / "file", fail)


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28]"), "No space left on device"),
        (OSError("Unexpected end\nof stream"), "Unexpected end"),
    ],
)
def test_what_the_system_refuses_is_a_sentence(tmp_path, problem, why):
    sentence = re.escape(f"{tmp_path} cannot be written ({why}): make room")
    with pytest.raises(CastmatesError, match=sentence), writing(tmp_path):
        raise problem


def test_tables_and_texts_that_cannot_be_written_are_sentences(tmp_path):
    for name in ("a.csv", "a.txt"):
        (tmp_path / name).mkdir()
    with pytest.raises(CastmatesError, match=r"a cannot be written \(Is a directory\)"):
        write_table(frame([], WINDOWS), tmp_path / "a")
    with pytest.raises(CastmatesError, match=r"a.txt cannot be written \(Is a directory\)"):
        texts.write_texts(texts.Texts("a", "b"), "a", tmp_path / "a")


def test_who_has_more_to_say_still_gets_the_system_s_error(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_text(tmp_path / "a", "text")
