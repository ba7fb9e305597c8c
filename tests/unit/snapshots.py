"""What a page or a command says, case by case, as it was: one file in tests/data/words for each.

`CASTMATES_RENEW=1 pytest tests/unit/test_words.py` writes the files of a module's tests anew: read `git diff`, and give
the reason in the commit.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from castmates.errors import CastmatesError

WORDS = Path(__file__).parents[1] / "data" / "words"


def assert_as_before(name: str, said: Mapping[str, str | Iterable[object]]) -> None:
    """Every case says what its file has, to the letter; of a list, each entry is a line."""
    lines = {case: [text] if isinstance(text, str) else list(text) for case, text in said.items()}
    text = "\n".join(f"## {case}\n" + "".join(f"{line}\n" for line in own) for case, own in lines.items())
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n") + "\n"
    file = WORDS / f"{name}.txt"
    if os.environ.get("CASTMATES_RENEW"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file}: see tests/unit/snapshots.py"


def refusal(call: Callable[..., object], *given: object, **keys: object) -> str:
    """The words with which this is refused: one sentence, unless the file of words has several lines."""
    with pytest.raises((CastmatesError, ValueError)) as caught:
        call(*given, **keys)
    return str(caught.value)
