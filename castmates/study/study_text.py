"""A study -> the text of its file, of those keys that are not at their defaults."""

import yaml

from castmates.study.model import Study


def study_text(study: Study, head: str) -> str:
    """A study file, which begins with a comment."""
    content = study.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return f"# {head}\n" + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
