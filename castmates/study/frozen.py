"""Base of the records that a plan is made of."""

import hashlib
import json

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A record with one canonical text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def canonical(self) -> str:
        """The one JSON text of this record; equal records give equal texts."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def fingerprint(self, digits: int = 8) -> str:
        """A short name of the content."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:digits]
