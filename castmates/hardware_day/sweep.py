"""The sweep of a day: a study of native programs with as many launches and partitions as there is time for."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from castmates import shipped
from castmates.english import counted, duration
from castmates.errors import CastmatesError
from castmates.files import mapping_in, replace_text
from castmates.hardware_day.steps import ENDING_S, Place, bounded
from castmates.protocols import Say
from castmates.report.machine_facts import MachineFacts
from castmates.report.results import Results, read_results
from castmates.results.folder import RESULTS, StudyFolder
from castmates.results.records import read_json
from castmates.results.tables import write_table

NAME, FILE, MACHINE = "hardware-day", "study.yaml", "sweep-machine"
TRIED = "tried.yaml"  # a size of the study that is only planned
SIZES = (20, 16, 12, 10, 8, 6, 5, 4, 3)  # launches of each lead; an interval takes three
PARTS = (1, 2, 4)  # every partition, every second one, every fourth one
TABLES_S = 120.0  # what tables, figures and page take at most, after the last launch
CLOSING_S = TABLES_S + ENDING_S
PLAN_S = 120.0
SPLIT = "split-"  # what the partitions of this study are called, before the number of ways
ALL = "all"


@dataclass(frozen=True)
class Sized:
    """A size of the study."""

    launches: int
    split: str | list[int]
    seconds: float  # that it takes at most
    cohorts: int
    partitions: int

    def __str__(self) -> str:
        partitions = counted(self.partitions, "partition") if self.partitions else "no partitions"
        return f"{self.launches} launches of each program, {partitions}"


def shortest(place: Place) -> float:
    """How long the sweep takes at least, by its plan."""
    return _planned(place, SIZES[-1], _kept_split(place) or _thinned(place, PARTS[-1])).seconds + CLOSING_S


def run(place: Place, seconds: float, say: Say) -> str:
    """Measure what fits into the time; where that was too little after all, show what was measured."""
    sized = next((size for size in _sizes(place) if size.seconds + CLOSING_S <= seconds), None)
    if sized is None:
        return f"no size of its study fits into the {duration(seconds)} that are left."
    say(f"    {sized}, {duration(sized.seconds)} at most")
    _write(place, FILE, sized.launches, sized.split)
    log, why = place.log_file("sweep"), ""
    ended = bounded(["sweep", FILE], log, seconds - CLOSING_S, say, place.project)
    if ended.code is None:
        whole = _whole(results_folder(place), sized.cohorts)
        of = f"{whole} of {counted(sized.launches, 'launch')}"
        why = f"its time was over after {of}; the same command measures the rest."
        if whole:
            _write(place, FILE, whole, sized.split)
            ended = bounded(["sweep", FILE], place.log_file("sweep-tables"), TABLES_S, say, place.project)
    keep(place)
    return why or ended.why


def results_folder(place: Place) -> StudyFolder:
    """Where the sweep's results lie."""
    return StudyFolder(place.project / RESULTS / NAME)


def results(place: Place) -> Results | None:
    """What the sweep found; None where it has no tables."""
    folder = results_folder(place)
    return read_results(folder.path, place.project / FILE) if folder.tables.is_dir() else None


def keep(place: Place) -> None:
    """Copy the tables and the facts of the machine into the day's folder, without names."""
    found = results(place)
    if found is None:
        return
    folder = place.folder / "tables"
    for name in sorted(file.stem for file in found.folder.tables.glob("*.parquet")):
        write_table(place.names.table(getattr(found, name)), folder / name)
    facts = MachineFacts.model_validate(read_json(found.folder.machine_file))
    place.keep(MACHINE, facts.model_dump(mode="json", exclude={"hostname", "distribution", "doctor"}))


def _sizes(place: Place) -> Iterator[Sized]:
    """The sizes from the largest on: launches are dropped before partitions, and those that are measured stay."""
    kept = _kept_split(place)
    for part in PARTS if kept is None else PARTS[:1]:
        split = _thinned(place, part) if kept is None else kept
        yield from (_planned(place, launches, split) for launches in SIZES)


def _kept_split(place: Place) -> str | list[int] | None:
    """The partitions of a sweep that has begun."""
    if not results_folder(place).measured_paths():
        return None
    return _study((place.project / FILE).read_text(encoding="utf-8"))["cache"]["sweeps"][0]["split"]  # type: ignore[no-any-return]


def _thinned(place: Place, part: int) -> str | list[int]:
    """The partitions, or every so many of them."""
    if part == 1:
        return ALL
    ways = [int(name.removeprefix(SPLIT)) for name in _outline(place, SIZES[-1], ALL)["partitions"]]
    return ways[part // 2 :: part] or ALL


def _planned(place: Place, launches: int, split: str | list[int]) -> Sized:
    found = _outline(place, launches, split)
    return Sized(launches, split, float(found["seconds"][1]), len(found["cohorts"]), len(found["partitions"]))


def _outline(place: Place, launches: int, split: str | list[int]) -> dict[str, Any]:
    """What `castmates plan` says of the study in this size."""
    _write(place, TRIED, launches, split)
    words = ["plan", TRIED, "--format", "json"]
    ended = bounded(words, place.log_file("plan"), PLAN_S, lambda _: None, place.project, aloud=False)
    if ended.why:
        raise CastmatesError(ended.why)
    return mapping_in(ended.printed.encode())


def _write(place: Place, name: str, launches: int, split: str | list[int]) -> None:
    study = _study((shipped.studies() / f"{NAME}.yaml").read_text(encoding="utf-8"))
    study["budget"]["launches"], study["cache"]["sweeps"][0]["split"] = launches, split
    replace_text(place.project / name, yaml.safe_dump(study, sort_keys=False))


def _study(text: str) -> dict[str, Any]:
    return dict(yaml.safe_load(text))


def _whole(folder: StudyFolder, cohorts: int) -> int:
    """How many launches every program has."""
    counts = Counter(path.partition("/")[0] for path in folder.measured_paths())
    return min(counts.values()) if len(counts) == cohorts else 0
