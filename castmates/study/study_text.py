"""A study -> the text of its file, of those keys that are not at their defaults."""

import yaml

from castmates.study.model import Study


def study_text(study: Study, head: str) -> str:
    """A study file, which begins with a comment."""
    return f"# {head}\n" + yaml.safe_dump(study.as_written(), sort_keys=False, allow_unicode=True)
