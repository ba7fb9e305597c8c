"""Freezes the launches of the golden study, once they must be others: `python -m tests.golden.freeze`.

Before it, `snakemake --cores 1 --config study=tests/data/golden/study.yaml` makes them in results/golden; after it,
`python -m tests.golden` writes the golden tables and page.
"""

import io
import json
import lzma
import tarfile
from pathlib import Path

import pandas as pd

from castmates.results.columns.launch import DIGESTS
from castmates.study.reasons import Reason, ReasonKind, reason_columns
from tests.golden.report import LAUNCHES

RESULTS = Path("results/golden")
HERE = {
    "host": "golden-host",
    "boot_id": "0",
    "started": "2026-01-05T10:00:00+00:00",
}  # of no machine
VERSIONS = {"castmates": "0", "kernel": "golden", "python": "3"}
FAILED = ("chase", "4")  # what a real study has too: a launch that failed, and windows that were rejected
REJECTED = (("vision", "2", "corun"), ("ranking", "3", "alone"))
REASON = reason_columns([Reason(ReasonKind.STEAL, "2.4 % of cpu0")])  # in all of the window, but in no slice alone
CHANGED = {"windows.parquet": {"valid": False, **REASON}, "slices.parquet": {"counted": False}}


def main() -> None:
    """Write the archive, which is the same for the same launches."""
    files = [RESULTS / "plan.json", RESULTS / "machine.json", *sorted(RESULTS.glob("launches/*/*/*.*"))]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file in files:
            if (content := _content(file)) is not None:
                about = tarfile.TarInfo(str(file.relative_to(RESULTS)))
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
    LAUNCHES.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def _content(file: Path) -> bytes | None:
    cohort, number = file.parts[-3].rpartition("-")[0], file.parts[-2]
    failed = (cohort, number) == FAILED
    if file.name == "machine.json":
        return _json(json.loads(file.read_bytes()) | {"read_at": HERE["started"]})
    if file.name == "launch.json":
        record = json.loads(file.read_bytes()) | HERE | {"versions": VERSIONS}
        record.pop(DIGESTS, None)  # its tables are written anew
        lost = sum((cohort, number) == one[:2] for one in REJECTED)
        return _json(record | {"windows_rejected": lost} | (_failure(record) if failed else {}))
    if file.suffix != ".parquet":
        return file.read_bytes()
    table = pd.read_parquet(file)
    if table.empty:
        return None  # of what a modelled machine does not count
    if file.name in CHANGED:
        table = _rejected(table, cohort, number, CHANGED[file.name])
    return (table.head(0) if failed else table).to_parquet(index=False, compression="none")


def _rejected(table: pd.DataFrame, cohort: str, number: str, what: dict[str, object]) -> pd.DataFrame:
    for name, launch, kind in REJECTED:
        if (cohort, number) == (name, launch):
            first = table.loc[table["kind"] == kind, "window"].min()
            table.loc[table["window"] == first, list(what)] = list(what.values())
    return table


def _failure(record: dict) -> dict:
    reason = "stream@1 ended with status 1 before it was ready"
    return {"status": "failed", "reason": reason, "rounds": 0, "windows": 0, "truth": {}, "settle": {}}


def _json(content: dict) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


if __name__ == "__main__":
    main()
