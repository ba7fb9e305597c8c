"""Whether two studies share launches: what is in both is no independent sample of either; pure, from launch.json."""

from collections.abc import Iterable, Mapping
from typing import Any

from castmates.analysis.effects.mask_stamp import MODELLED

Record = Mapping[str, Any]


def shared_launches(a: Iterable[Record], b: Iterable[Record]) -> list[str]:
    """COHORT/NUMBER of A's launches that are B's too, even under another name."""
    theirs = {_launch(record) for record in b}
    return [_place(record) for record in a if _launch(record) in theirs]


def _launch(record: Record) -> tuple[str, ...]:
    """What identifies a launch: where and when it began; of a modelled one its seed, which decides its noise."""
    spec = record.get("spec") or {}
    if record.get("platform") == MODELLED:
        return MODELLED, str(spec.get("seed")), _place(record)
    where = (str(record.get(name, "")) for name in ("host", "boot_id", "started"))
    return *where, _place(record)


def _place(record: Record) -> str:
    spec = record.get("spec") or {}
    return f"{(spec.get('cohort') or {}).get('id', '?')}/{spec.get('number', '?')}"
