"""Base of the records that a plan is made of."""

import hashlib
import json
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A record with one canonical text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def canonical(self, without: Iterable[str] = ()) -> str:
        """The one JSON text of this record, which leaves defaults out, so that a new field changes no text."""
        content = self.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    def fingerprint(self, digits: int = 8) -> str:
        """A short name of the content."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:digits]
