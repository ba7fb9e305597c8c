"""A regular expression as people write it means the same to the C library after it was put into POSIX's words."""

import ctypes
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from castmates.study.written import posix
from tests.unit.snapshots import assert_as_before, refusal

EXTENDED = 1
LIBC = ctypes.CDLL(None)


def found_by_libc(pattern: str, text: str) -> bool:
    compiled = ctypes.create_string_buffer(512)
    assert LIBC.regcomp(compiled, pattern.encode(), EXTENDED) == 0, pattern
    try:
        return LIBC.regexec(compiled, text.encode(), 0, None, 0) == 0
    finally:
        LIBC.regfree(compiled)


LITERALS = st.text("ab1 -]^_:<>'", min_size=1, max_size=3).map(re.escape)
SETS = st.lists(
    st.sampled_from(["a", "b", "0-9", r"\d", r"\s", r"\w", r"\]", r"\-", r"\^", r"\\", ":", "_"]),
    min_size=1,
    max_size=4,
)
PIECES = st.one_of(
    LITERALS,
    st.sampled_from(
        [r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", ".", r"\.", r"\b", r"\<", r"\>", r"\'", r"\`", "{", "}"]
    ),
    st.builds(lambda negated, parts: f"[{negated}{''.join(parts)}]", st.sampled_from(["", "^"]), SETS),
    st.builds(
        lambda one, many: f"(?:{one}){many}".replace("?:", ""), LITERALS, st.sampled_from(["*", "+", "?", "{2}"])
    ),
)


@example([r"[\^]"], "^")
@example([r"[\^\-]"], "-")
@given(st.lists(PIECES, min_size=1, max_size=4), st.text("ab1 -]^_:{}\\.", max_size=8))
def test_it_means_the_same_to_both(pieces, text):
    pattern = "".join(pieces)
    assert found_by_libc(posix(pattern), text) == bool(re.search(pattern, text))


@pytest.mark.parametrize(
    ("pattern", "text", "group"),
    [
        (r"step (\d+)", "step 41 of 90", "41"),
        (r"^\[(\d+)/\d+\]", "[7/9] Linking", "7"),
        (r"loss=[\d.]+ step=([[:digit:]]{1,9})$", "loss=0.3 step=12", "12"),
        (r"(\d+) \{done\}", "3 {done}", "3"),
    ],
)
def test_usual_lines(pattern, text, group):
    assert found_by_libc(posix(pattern), text)
    assert not found_by_libc(posix(pattern), "nothing of the kind")
    assert re.search(pattern.replace("[[:digit:]]", r"\d"), text)[1] == group


def test_what_posix_cannot_say_is_refused():
    wrong = ["a(", "(?P<n>a)", "a.*?b", "a{2}+", r"\Aa", r"(a)\1", r"[\Da]", "[[=a=]]", "[[.a.]]", "a\nb"]
    assert_as_before("patterns", {repr(pattern): refusal(posix, pattern) for pattern in wrong})
