"""The text of a study file, as it stands."""

from pathlib import Path

from castmates.errors import CastmatesError


def text_of_study(file: Path) -> str:
    """Read it; a file that cannot be read is a sentence."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CastmatesError(f"{file}: the study file cannot be read: {problem}.") from None
