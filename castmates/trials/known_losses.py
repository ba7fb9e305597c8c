"""`castmates doctor --truth`: are losses found here that are known, because they are injected?

A neighbour that only sleeps asks for a share of the rate while it runs, and the lead pays it by extra work before
each heartbeat (`tax` and `taxed`). They are measured and estimated as in a study.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import yaml

import castmates
from castmates import project
from castmates.analysis.effects.effects import estimate_effects
from castmates.errors import CastmatesError
from castmates.machine.lock import machine_lock
from castmates.machine.probes import platform_here
from castmates.machine.topology import read_topology
from castmates.protocols import Say
from castmates.results.launch_tables import read_windows
from castmates.runner.cleanup.warden import guarded
from castmates.runner.launch import Measure, run_launch
from castmates.runner.outcome import Measured, summary
from castmates.runner.staging import scratch_folder
from castmates.study.spec import UNMANAGED, Plan
from castmates.workloads import environments

if TYPE_CHECKING:
    from rich.table import Table

WHAT = "castmates doctor --truth"
STUDY, LEAD = "doctor-truth", "taxed"
LOSSES = (0.0, 0.01, 0.05)  # as a share of the rate
SHORT: Mapping[str, object] = {  # launches: those of the trial are the first of so many
    "budget": {"launches": 1000, "rounds": 3, "window": 0.3, "antagonists_alone": False}
}
FEWEST = 3  # launches
NEAR, WIDEST = 0.2, 1.0  # points: what counts as none, and the half-width above which an interval shows nothing
MARGIN = 0.02  # of verdicts, which are not read here
STYLES = {"found": "green", "wrong": "red", "not shown": "yellow"}

Verdict = Literal["found", "wrong", "not shown"]


@dataclass(frozen=True)
class Found:
    """A loss that is known and what was found, in per cent of the rate, with the 95 % interval."""

    known: float
    loss: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Wrong where all of the interval lies far from the truth, however wide it is."""
        below, above = self.low - self.known, self.high - self.known
        if below > NEAR or above < -NEAR:
            return "wrong"
        agrees = below <= 0 <= above or (below >= -NEAR and above <= NEAR)
        return "found" if agrees and above - below <= 2 * WIDEST else "not shown"

    def less(self, known: float = 0.0) -> str:
        """What was found, less what is known, as people write it."""
        loss, low, high = (f"{one - known:.2f}" for one in (self.loss, self.low, self.high))
        return f"{loss} [{low}, {high}]"


def verify(envs: Path, cache: Path, minutes: float, say: Say) -> dict[str, Any]:
    """Measure for so long, and return what was found."""
    if len(project.layout_of(read_topology()).cores) < 2:
        raise CastmatesError(f"{WHAT} needs two cores, one of them for the neighbour, and only one may be used here.")
    environments.build(environments.NATIVE, envs, cache)
    with guarded() as warden, scratch_folder(warden) as folder:
        neighbours = {name("tax", loss): asking(loss) for loss in LOSSES}
        plan = project.load(study_file(folder, LEAD, neighbours, SHORT)).plan()
        outcomes = measure(plan, cache, folder, minutes, say)
        plan = plan.model_copy(update={"launches": tuple(one.launch for one in outcomes)})
        table = losses(plan, read_windows([folder / launch.path for launch in plan.launches]))
    return record_of(outcomes, table)


# Studies of known losses, here and in benchmarks/truth.py.


def name(kind: str, loss: float) -> str:
    """A neighbour's, for example tax-0.5."""
    return f"{kind}-{100 * loss:g}"


def asking(loss: float) -> dict[str, Any]:
    """The neighbour that sleeps, and asks for so much."""
    return {"like": "tax", "options": {"loss": f"{100 * loss:g}%", "sleep": True}}


def study_file(folder: Path, lead: str, workloads: Mapping[str, Mapping[str, Any]], keys: Mapping[str, object]) -> Path:
    """Write the study of a lead beside all other workloads, with further keys."""
    study = {
        "name": STUDY,
        "leads": [lead],
        "antagonists": [one for one in workloads if one != lead],
        "workloads": {**workloads},
        "controls": None,
        **keys,
    }
    file = folder / "known.yaml"
    file.write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    return file


def losses(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """What a study of these launches prints of each mix: loss_pct, loss_low, loss_high."""
    rows = estimate_effects(plan, windows, margin=MARGIN)
    rows = rows[(rows["role"] == "lead") & (rows["baseline"] == "alone") & (rows["partition"] == UNMANAGED)]
    return rows.set_index("mix").reindex([mix.name for mix in plan.mixes])


# The trial.


def measure(plan: Plan, cache: Path, folder: Path, minutes: float, say: Say) -> list[Measured]:
    """Measure launches until one more would take too long, and at least as many as give an interval."""
    begun, longest = time.monotonic(), 0.0
    outcomes: list[Measured] = []
    for launch in plan.launches:
        spent = time.monotonic() - begun
        if len(outcomes) >= FEWEST and spent + longest > 60 * minutes:
            break
        place = folder / launch.path
        (place / "logs").mkdir(parents=True)
        with machine_lock(WHAT, say=say):  # who holds it is said; what a launch says of itself is not
            pass
        outcome = run_launch(launch, place / "logs", cache, lambda _: None, lambda: None)
        assert isinstance(outcome, Measured)
        if outcome.status == "failed":
            raise CastmatesError(f"known losses cannot be measured: {outcome.reason}")
        Measure.write(outcome, place)
        outcomes.append(outcome)
        longest = max(longest, outcome.total_seconds)
        rejected = summary(outcome.windows) or "none rejected"
        say(f"launch {len(outcomes)}, {(spent + outcome.total_seconds) / 60:.1f} of {minutes:g} minutes: {rejected}")
    return outcomes


def record_of(outcomes: Sequence[Measured], table: pd.DataFrame) -> dict[str, Any]:
    """What was found, with the verdict on all of it and a sentence."""
    found = [
        Found(100 * known, *(float(row[column]) for column in ("loss_pct", "loss_low", "loss_high")))
        for known, (_, row) in zip(LOSSES, table.iterrows(), strict=True)
    ]
    windows = [window for outcome in outcomes for window in outcome.windows]
    verdict, said = judged(found)
    return {
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "castmates": castmates.__version__,
        "platform": platform_here(),
        "launches": len(outcomes),
        "windows": len(windows),
        "rejected": sum(bool(window.reasons) for window in windows),
        "losses": [asdict(one) | {"verdict": one.verdict} for one in found],
        "verdict": verdict,
        "said": said,
    }


def judged(found: Sequence[Found]) -> tuple[Verdict, str]:
    """The worst verdict, and a sentence on it."""
    if wrong := [one for one in found if one.verdict == "wrong"]:
        worst = max(wrong, key=lambda one: abs(one.loss - one.known))
        return "wrong", (
            f"Losses found here are off by {worst.less(worst.known)} points where {worst.known:g} % is known: do not "
            "rely on losses that are measured here; `castmates doctor` shows what may disturb them."
        )
    if unknown := [one for one in found if one.verdict == "not shown"]:
        widest = max(unknown, key=lambda one: one.high - one.low if math.isfinite(one.high) else math.inf)
        seen = f"{widest.less()} %" if math.isfinite(widest.high) else "no interval"
        return "not shown", (
            f"It is not shown that known losses are found here: where {widest.known:g} % is known, {seen} came out. "
            "End other programs, or give more --minutes."
        )
    known = ", ".join(f"{one.known:g}" for one in found)
    off = max(abs(one.loss - one.known) for one in found)
    return "found", f"Castmates finds known losses here: of {known} % none is off by more than {off:.2f} points."


def as_table(record: Mapping[str, Any]) -> "Table":
    """What is known beside what was found."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = f"{record['launches']} launches, {record['rejected']} of {record['windows']} windows rejected"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=title, caption_justify="left")
    for column in ("known loss", "found", "95 % interval", "verdict"):
        table.add_column(column, justify="right" if column != "verdict" else "left", no_wrap=True)
    for row in record["losses"]:
        numbers = [f"{row[key]:.2f}" for key in ("loss", "low", "high")]
        ends = f"{numbers[1]} to {numbers[2]} %" if math.isfinite(row["high"]) else "none"
        found = f"{numbers[0]} %" if math.isfinite(row["loss"]) else "none"
        table.add_row(f"{row['known']:g} %", found, ends, Text(row["verdict"], style=STYLES[row["verdict"]]))
    return table


def raise_unless_found(record: Mapping[str, Any]) -> None:
    """End with the sentence as an error where a known loss was not found."""
    if record["verdict"] != "found":
        raise CastmatesError(record["said"])
