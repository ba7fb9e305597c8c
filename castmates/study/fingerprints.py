"""Fingerprints of thousands of launches: what they have in common is put into words once, not once for each."""

import hashlib
import json
from typing import Protocol

from castmates.study.frozen import Frozen
from castmates.study.spec import Cohort, Design, Launch, Plan


class _Digest(Protocol):
    def update(self, text: bytes, /) -> None: ...


class Fingerprints:
    """The same as `Frozen.fingerprint` gives."""

    def __init__(self) -> None:
        self._texts: dict[int, bytes] = {}
        self._known: list[Frozen] = []  # kept, so that no other record gets the id of one of them

    def of_launch(self, launch: Launch, digits: int = 16) -> str:
        """The fingerprint of a launch."""
        digest = hashlib.sha256()
        self._add(digest, launch)
        return digest.hexdigest()[:digits]

    def of_plan(self, plan: Plan, digits: int = 16) -> str:
        """The fingerprint of a plan; its text, which may be hundreds of megabytes, is never whole in memory."""
        names = type(plan).model_fields
        before = plan.canonical(without=[name for name in names if name >= "launches"])  # keys are sorted
        after = plan.canonical(without=[name for name in names if name <= "launches"])
        digest = hashlib.sha256(before[:-1].encode() + b',"launches":[')
        for place, launch in enumerate(plan.launches):
            if place:
                digest.update(b",")
            self._add(digest, launch)
        digest.update(b"]," + after[1:].encode())
        return digest.hexdigest()[:digits]

    def _add(self, digest: _Digest, launch: Launch) -> None:
        """Add the launch's canonical text."""
        digest.update(b'{"cohort":')
        digest.update(self._text(launch.cohort))
        digest.update(b',"design":')
        digest.update(self._text(launch.design))
        rest = f',"number":{launch.number},"seed":{launch.seed},"study":{json.dumps(launch.study)}}}'
        digest.update(rest.encode())

    def _text(self, common: Cohort | Design) -> bytes:
        if id(common) not in self._texts:
            self._known.append(common)
            self._texts[id(common)] = common.canonical().encode()
        return self._texts[id(common)]
