"""Words in angle brackets in docstrings, for example results/<study>, are not HTML tags (an extension of Griffe)."""

import re
from typing import Any

import griffe

from docs_site.links import FENCED


class Escapes(griffe.Extension):
    """Writes the brackets as entities; code stays as it is."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401 (Griffe's)
        """Called for each module, class and function that is read."""
        if obj.docstring:
            parts = FENCED.split(obj.docstring.value)
            parts[::2] = [re.sub(r"<([^<>\n]+)>", r"&lt;\1&gt;", part) for part in parts[::2]]
            obj.docstring.value = "".join(parts)
