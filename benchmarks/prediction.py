"""How far off are losses that are predicted from 40 % of a grid? On modelled machines, and on a grid measured here.

What is missing of the grid is measured first, by `castmates sweep`. Parts of it are then hidden, and predicted from the
rest.
"""

import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

import castmates
from benchmarks import verdicts
from benchmarks.common import Report, arguments_of, percent, run, say
from benchmarks.simulated_grids import DIALS, REPORTER, Grid, Mix, grid, measured
from benchmarks.sweeps import of_leads
from benchmarks.verdicts import Aim, Finding
from castmates.analysis.prediction.pairs import LEAD, best, seen_in
from castmates.analysis.prediction.predicted import Guess, PredictedLosses
from castmates.errors import CastmatesError
from castmates.report.results import Results
from castmates.report.text.prediction import role_words
from castmates.results.columns.study import EFFECTS
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables
from castmates.study.placement_keys import Pair, PredictKeys, design

AIM = Aim(most=2.0)  # points of mean error, from at most SHARE of the grid
SHARE = 0.4
SIZE = 12  # programs of a modelled grid
MANY = 30  # combinations of two or three antagonists that are predicted
SHOWING = 12  # such combinations that were measured
DIALS_HERE = ("capacity-half-llc", "bandwidth-5gbs")
SHARE_WITH_BUBBLES = 0.5  # of a small grid: each lead beside each of them is most of it
REPORTER_HERE = "chase-in-cache"
GRID = Path("config/studies/grid.yaml")


@dataclass
class Score:
    """How predictions of one way came out; a list for each study or lead."""

    shares: list[float] = field(default_factory=list)  # of the grid that was measured
    means: list[float] = field(default_factory=list)  # absolute errors, in points
    guessed: list[float] = field(default_factory=list)  # the same of those that were measured in no role
    largest: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)  # share of intervals with a further measurement inside
    halves: list[float] = field(default_factory=list)  # half-widths, in points

    def add(self, off: Sequence[float], guessed: Sequence[bool], held: Sequence[bool], halves: Sequence[float]) -> None:
        """One study; `guessed`: which losses no mix has shown, not even of its antagonist."""
        self.means.append(float(np.mean(off)))
        self.guessed.append(float(np.mean(np.asarray(off)[np.asarray(guessed)])) if any(guessed) else math.nan)
        self.largest.append(float(np.max(off)))
        if held:
            self.held.append(float(np.mean(held)))
            self.halves.append(float(np.mean(halves)))

    def cells(self) -> list[str]:
        """A row of the table."""
        held = f"{percent(float(np.mean(self.held)))}" if self.held else "none"
        half = f"±{np.mean(self.halves):.1f}" if self.halves else "–"
        return [
            percent(float(np.mean(self.shares)), 0),
            f"{np.mean(self.means):.2f}",
            f"{np.nanmean(self.guessed):.2f}",
            f"{np.quantile(self.means, 0.95):.1f}",
            f"{np.mean(self.largest):.1f}",
            held,
            half,
        ]


@dataclass(frozen=True)
class Way:
    """What is measured of a grid."""

    words: str
    both: bool = True  # antagonists' losses are used too
    bubbles: bool = False
    share: float = SHARE

    def mixes(self, names: Sequence[str], bubbles: Sequence[str], reporter: str, seed: int) -> list[Pair]:
        """The pairs that a study measures. Where leads alone count, the design must not rely on antagonists."""
        beside = {name if self.both else f"{name}.beside": name for name in names}
        keys = PredictKeys(
            leads=list(names),
            antagonists=list(beside),
            bubbles=list(bubbles) if self.bubbles else [],
            reporters=[reporter] if self.bubbles else [],
            measure=self.share,
        )
        return [(lead, beside.get(name, name)) for lead, name in design(keys, seed).fitted]


BOTH = Way("pairs, both members")
WAYS = (
    BOTH,
    Way("pairs, leads alone", both=False),
    Way("bubbles, a reporter and pairs, both members", bubbles=True),
    Way("bubbles and a reporter alone, both members", bubbles=True, share=0.36),
)
HEADER = [
    "measured",
    "share of the grid",
    "mean error",
    "of those in no mix",
    "of one study in 20",
    "largest error",
    "95 % intervals hold",
    "wide",
]


def main() -> None:
    """Simulate, take the grid of this machine apart, and print the results."""
    parser = arguments_of(__doc__, minutes=0)
    parser.add_argument("--studies", type=int, default=100, help="modelled machines")
    parser.add_argument("--designs", type=int, default=200, help="ways to hide a part of the measured grid")
    parser.add_argument("--grid", type=Path, default=GRID, help="study of a whole grid on this machine")
    options = parser.parse_args()
    report = Report("Predicted losses", "prediction")
    results = swept(options.grid)
    on_modelled_machines(report, options.studies, options.seed)
    on_this_machine(report, results.folder.path, options.designs)
    started = sorted(results.launches["started"])
    report.text(f"The grid's {len(started)} launches began from {started[0]} to {started[-1]}.")
    report.print()


def swept(study: Path) -> Results:
    """Measure what is missing of a study."""
    words = [sys.executable, "-m", "castmates", "sweep", str(study)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise CastmatesError(f"castmates sweep {study} ended with {done.returncode} (see above).")
    return castmates.load(study)


def on_modelled_machines(report: Report, studies: int, seed: int) -> None:
    """The table of modelled machines, whose truth is known."""
    scores, together = {way: Score() for way in WAYS}, Score()
    for number in range(studies):
        if number % 20 == 0:
            say(f"modelled machine {number + 1} of {studies}")
        rng = np.random.default_rng(seed + number)
        one = grid(SIZE, rng)
        for way, score in scores.items():
            losses = studied(one, way, number, rng, score)
            if way is BOTH:
                several(one, losses, rng, together)
    report.text(
        f"Modelled, not measured: {studies} machines with {SIZE} random programs each, of {SIZE * SIZE} pairs; losses "
        "as studies of five launches would find them. Errors are differences to the true loss, in points of the rate "
        "when alone, over all pairs that were not measured as a mix; intervals are compared with a further "
        f"measurement. Bubbles: {', '.join(DIALS)}. With `both members`, a mix shows what its antagonist loses too."
    )
    rows = [[way.words, *score.cells()] for way, score in scores.items()]
    report.table(HEADER, [*rows, [f"two or three antagonists, from {BOTH.words}", *together.cells()]])
    report.found(
        *(_finding(f"modelled, {way.words}: mean error of all others", score) for way, score in scores.items()),
        _finding("modelled, two or three antagonists: mean error", together),
        verdicts.mean(
            f"modelled, {BOTH.words}: mean error of those in no mix", scores[BOTH].guessed, "points", "studies", AIM
        ),
        verdicts.mean(
            f"modelled, {BOTH.words}: intervals that hold a further measurement",
            [100 * each for each in scores[BOTH].held], "%", "studies", Aim(least=93.0, most=97.0),
        ),
    )  # fmt: skip


def _finding(what: str, score: Score, of: str = "studies") -> Finding:
    return verdicts.mean(what, score.means, "points", of, AIM)


def studied(one: Grid, way: Way, seed: int, rng: np.random.Generator, score: Score) -> PredictedLosses:
    """Measure a part, predict all other pairs, and hold them against the truth."""
    mixes = way.mixes(one.names, list(DIALS), REPORTER, seed)
    effects = measured(one, mixes, rng, way.both)
    if way.both:
        effects = pd.concat([effects, measured(one, _combinations(one, SHOWING, rng), rng)], ignore_index=True)
    losses = PredictedLosses.from_effects(effects, leads=one.names, targets=one.names, dials=DIALS)
    cells = [(lead, name) for lead in one.names for name in one.names if (lead, name) not in mixes]
    score.shares.append(len(mixes) / len(one.names) ** 2)
    _compare(one, losses, cells, rng, score)
    return losses


def several(one: Grid, losses: PredictedLosses, rng: np.random.Generator, score: Score) -> None:
    """What two or three antagonists do together, of combinations that were not measured."""
    score.shares.append(SHARE)
    _compare(one, losses, list(_combinations(one, MANY, rng)), rng, score)


def _combinations(one: Grid, count: int, rng: np.random.Generator) -> Iterator[Mix]:
    for _ in range(count):
        yield tuple(str(name) for name in rng.choice(list(one.names), size=int(rng.integers(3, 5))))


def _compare(one: Grid, losses: PredictedLosses, cells: Sequence[Mix], rng: np.random.Generator, score: Score) -> None:
    off, guessed, held, halves = [], [], [], []
    for lead, *others in cells:
        true = one.truth((lead, *others))[0]
        cell = lead, tuple(sorted(others))
        seen = losses.seen.get(cell)  # of the antagonist of a mix
        guess = losses.guess(*cell) if seen is None else Guess(seen.log, math.nan)
        if guess is None:
            raise ValueError(f"nothing is known of {lead} beside {' and '.join(others)}")
        off.append(100 * abs(math.exp(-guess.log) - math.exp(-true)))
        guessed.append(seen is None)
        if not math.isnan(guess.half):
            again = best(seen_in(measured(one, [(lead, *others)], rng)))[cell]
            held.append(abs(again.log - guess.log) <= guess.half)
            halves.append(guess.loss.high - guess.loss.low)
    score.add(off, guessed, held, [each / 2 for each in halves])


def on_this_machine(report: Report, folder: Path, designs: int) -> None:
    """Hide parts of a grid that was measured whole, and predict them from the rest."""
    effects = Tables(StudyFolder(folder)).read(EFFECTS)
    names = [name for name in dict.fromkeys(effects["lead"]) if name in set(effects["antagonists"])]
    ways = [BOTH, Way("pairs, leads alone", both=False)]
    if {*DIALS_HERE} <= {*effects["antagonists"]} and REPORTER_HERE in names:
        ways.append(Way("bubbles, a reporter and pairs, both members", bubbles=True, share=SHARE_WITH_BUBBLES))
    rows, by_way = list[list[str]](), dict[str, dict[str, list[float]]]()
    for way in ways:
        say(f"the grid of {folder}: {way.words}")
        score, by_lead = Score(), {name: list[float]() for name in names}
        for number in range(designs):
            _hidden(effects, names, way, number, (score, by_lead))
        rows.append([way.words, *score.cells()])
        by_way[way.words] = by_lead
        if not way.bubbles:
            report.found(
                verdicts.mean(
                    f"{' and '.join(dict.fromkeys(effects['platform']))}, {way.words}: mean error of all others",
                    [float(np.mean(off)) for off in by_lead.values()], "points", "leads", AIM,
                )
            )  # fmt: skip
    report.text(
        f"A grid of {len(names)} × {len(names)} native programs that was measured whole (`{folder.name}`: "
        f"{', '.join(names)}), of which {designs} designs hide a part each. Errors are differences to the measured "
        "loss; those to the true loss are smaller. The figures below are over leads, because designs share their pairs."
    )
    report.table([*HEADER[:4], "of one design in 20", *HEADER[5:]], rows)
    report.text("By lead, the mean error, and how well the losses are known that predictions are compared with:")
    known = [_known(effects, name, names) for name in names]
    halves = [f"±{half:.1f}" for half in known]
    errors = [
        [words, *(f"{np.mean(off):.1f}" if off else "all measured" for off in own.values())]
        for words, own in by_way.items()
    ]
    report.table(["measured", *names], [*errors, ["half of the 95 % interval, median", *halves]])
    report.text(*role_words(effects))


def _known(effects: pd.DataFrame, lead: str, names: Sequence[str]) -> float:
    """Half of the interval of a lead's measured losses, in points; the median."""
    own = of_leads(effects)
    own = own[(own["lead"] == lead) & own["antagonists"].isin(names)]
    return float((own["loss_high"] - own["loss_low"]).median()) / 2


def _hidden(
    effects: pd.DataFrame, names: Sequence[str], way: Way, number: int, into: tuple[Score, Mapping[str, list[float]]]
) -> None:
    score, by_lead = into
    mixes = way.mixes(names, DIALS_HERE, REPORTER_HERE, number)
    chosen = {f"{lead}+{name}" for lead, name in mixes}
    shown = effects[effects["mix"].isin(chosen)]
    shown = shown if way.both else shown[shown["role"] == "lead"]
    losses = PredictedLosses.from_effects(shown, leads=names, targets=names, dials=DIALS_HERE)
    whole = {cell: each for cell, each in best(seen_in(effects)).items() if each.how == LEAD}
    off, guessed, held, halves = [], [], [], []
    for lead in names:
        for name in names:
            if (lead, name) in mixes:
                continue
            if (true := whole.get((lead, (name,)))) is None:
                raise CastmatesError(f"the grid is not whole: {lead} beside {name} was not measured; run its sweep.")
            seen, guess = losses.seen.get((lead, (name,))), losses.guess(lead, (name,))
            if seen is None and guess is None:
                raise ValueError(f"nothing is known of {lead} beside {name}")
            log = seen.log if seen is not None else guess.log if guess is not None else math.nan
            off.append(100 * abs(math.exp(-log) - math.exp(-true.log)))
            guessed.append(seen is None)
            by_lead[lead].append(off[-1])
            if seen is None and guess is not None and not math.isnan(guess.half):
                held.append(abs(true.log - guess.log) <= guess.half)
                halves.append((guess.loss.high - guess.loss.low) / 2)
    score.shares.append(len(mixes) / len(names) ** 2)
    score.add(off, guessed, held, halves)


if __name__ == "__main__":
    run(main)
