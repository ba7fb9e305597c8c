"""Placement advice on the modelled machine: what it gains by the model's truth, and how far it is from the best.

Programs are drawn at random. Their pairs are measured as well as five launches measure them; larger groups are composed
of pairs. The advice is compared with random placement, with spreading, and with the best grouping of somebody who knows
every group's true losses. The searches are then timed on random losses of more and more jobs.
"""

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy import stats

from benchmarks import verdicts
from benchmarks.common import Report, TimeBox, arguments_of, run, say
from benchmarks.verdicts import Aim, Finding
from castmates.analysis.grouping.problem import Grouping, Groups, Job, Problem, usual_groups
from castmates.analysis.grouping.search import MOST_SEEN, search, solve, try_all
from castmates.analysis.prediction.predicted import Loss, Losses, MeasuredLosses, Place, best_known, combined_loss
from castmates.analysis.statistics.power import log_of, loss_pct
from castmates.english import counted
from castmates.runner.modelled.balance import Actor, Grant, balance
from castmates.study.modelled import MachineModel, WorkloadModel

PROGRAMS, DOMAINS, CORES, TOGETHER = 12, 4, 4, 4
LAUNCHES, SPREAD = 5, 0.01  # of a measured pair: launches, and their standard deviation in log units
LIMIT, LIMITED = 10.0, 4  # per cent, and programs that have this limit
DRAWN = 300  # groupings at random and by spreading
SIZES = ((6, 2), (8, 3), (10, 3), (12, 4), (16, 4), (20, 5), (24, 6))  # jobs, domains
GAINS, AT_MOST = Aim(least=0.0), Aim(most=5.0)


@dataclass
class Truth:
    """What the model gives for every group, without noise."""

    models: Mapping[str, WorkloadModel]
    machine: MachineModel
    known: dict[tuple[str, ...], Mapping[str, float]] = field(default_factory=dict)

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """A loss without an interval's width."""
        if ways is not None:
            return None
        alone, together = self.rates((job,))[job], self.rates((job, *beside))[job]
        pct = 100 * (1 - together / alone)
        return Loss(pct, pct, pct, "measured")

    def rates(self, members: Sequence[str]) -> Mapping[str, float]:
        """Steps a second of each."""
        key = tuple(sorted(members))
        if key not in self.known:
            grant = Grant((self.machine.full,))
            actors = [Actor.on(self.machine, name, self.models[name], (cpu,), grant) for cpu, name in enumerate(key)]
            self.known[key] = dict(zip(key, balance(actors, self.machine).rates, strict=True))
        return self.known[key]


@dataclass(frozen=True)
class Case:
    """What one set of programs came to."""

    gain_random: float  # per cent more done, by the truth
    gain_spreading: float
    regret: float  # per cent less done than in the best grouping of all
    kept: float  # share of limits that are kept by the truth, of those that the advice expected to keep
    expected: int  # limits that it expected to keep
    error: float  # mean absolute error of composed losses, points
    bias: float
    held: float  # share of composed losses whose truth is below their upper end


def main() -> None:
    """Draw sets of programs until the time is over, and report."""
    parser = arguments_of(__doc__, minutes=4)
    given = parser.parse_args()
    report, box, cases = Report("Placement advice on the modelled machine", "placement"), TimeBox(given.minutes), []
    for number in box.portions():
        cases.append(one_case(given.seed + number))
        say(f"set {number + 1}: {cases[-1].gain_random:.1f} % above random, {cases[-1].regret:.2f} % below the best")
    describe(report, cases)
    times = list(timed(given.seed))
    describe_times(report, times)
    report.found(*findings(cases))
    report.print()


def programs(seed: int) -> Mapping[str, WorkloadModel]:
    """Programs from arithmetic to streaming, with working sets of all sizes around that of the cache."""
    chance = random.Random(f"placement/{seed}")
    models = {}
    for number in range(PROGRAMS):
        first, second = chance.uniform(0.2, 0.6), chance.uniform(0.0, 0.4)
        sizes = [round(2 ** chance.uniform(8, 15)) for _ in range(2)]  # KiB
        reuse = [{"size": f"{size} KiB", "share": part} for size, part in zip(sizes, (first, second), strict=True)]
        models[f"p{number}"] = WorkloadModel.model_validate(
            {
                "compute": 0.001 * 2 ** chance.uniform(0, 4),
                "accesses": round(2 ** chance.uniform(14, 19)),
                "parallel": chance.uniform(1.5, 10),
                "writes": chance.uniform(0, 0.4),
                "reuse": reuse,
            }
        )
    return models


def one_case(seed: int) -> Case:
    """Place one set of programs by measured pairs, and judge it by the truth."""
    machine = MachineModel(cores=CORES)
    truth = Truth(programs(seed), machine)
    names = list(truth.models)
    known = best_known(measured(truth, names, seed))
    free, limited = problem(names, {}), problem(names, dict.fromkeys(names[:LIMITED], LIMIT))
    (advised, *_), (best, *_) = (search(Groups(free, losses)).best for losses in (known, truth))
    ways = {way: usual_groups(Groups(free, truth), way, seed, DRAWN) for way in ("random", "spreading")}
    done = {way: float(np.mean([each.stp for each in own.groupings])) for way, own in ways.items()}
    really = true_stp(advised, truth)
    kept = [loss for name, loss in under(limited, known) if name in names[:LIMITED]]
    errors = np.array(list(composed_errors(truth, known, names, seed)))
    return Case(
        gain_random=100 * (really / done["random"] - 1),
        gain_spreading=100 * (really / done["spreading"] - 1),
        regret=100 * (1 - really / best.stp),
        kept=kept_share(limited, known, truth),
        expected=sum(loss.high <= LIMIT for loss in kept),
        error=float(np.abs(errors[:, 0]).mean()),
        bias=float(errors[:, 0].mean()),
        held=float((errors[:, 1] >= 0).mean()),
    )


def problem(names: Sequence[str], limits: Mapping[str, float]) -> Problem:
    """Each program once, on the domains of this benchmark."""
    return Problem(tuple(Job(name, 1, 1, limits.get(name)) for name in names), (CORES,) * DOMAINS, most=TOGETHER)


def measured(truth: Truth, names: Sequence[str], seed: int) -> MeasuredLosses:
    """All pairs, as a few launches measure them."""
    chance = np.random.default_rng(seed)
    quantile = float(stats.t.ppf(0.975, LAUNCHES - 1))
    pairs = dict[Place, Loss]()
    for job in names:
        for other in names:
            loss = truth.of(job, [other]) if job != other else None
            if loss is None:
                continue
            logs = log_of(loss.pct) + chance.normal(0, SPREAD, LAUNCHES)
            mean, half = float(logs.mean()), quantile * float(logs.std(ddof=1)) / math.sqrt(LAUNCHES)
            pct, low, high = (loss_pct(log) for log in (mean, mean - half, mean + half))
            pairs[job, (other,), None] = Loss(pct, low, high, "measured")
    return MeasuredLosses(pairs)


def true_stp(grouping: Grouping, truth: Truth) -> float:
    """What all jobs really get done in a grouping."""
    rates = [(truth.rates(group.members), group.members) for group in grouping.groups]
    return sum(own[name] / truth.rates((name,))[name] for own, members in rates for name in members)


def under(limited: Problem, known: Losses) -> list[tuple[str, Loss]]:
    """Every job's loss in the grouping that is advised under limits."""
    return search(Groups(limited, known)).best[0].losses


def kept_share(limited: Problem, known: Losses, truth: Truth) -> float:
    """Of the limits that the advice expects to keep, the share that is kept by the truth; NaN where there are none."""
    grouping = search(Groups(limited, known)).best[0]
    kept = []
    for group in grouping.groups:
        for name, loss in zip(group.members, group.losses, strict=True):
            if limited.by_name[name].limit is not None and loss.high <= LIMIT:
                real = 100 * (1 - truth.rates(group.members)[name] / truth.rates((name,))[name])
                kept.append(real <= LIMIT)
    return float(np.mean(kept)) if kept else math.nan


def composed_errors(truth: Truth, known: Losses, names: Sequence[str], seed: int) -> Iterator[tuple[float, float]]:
    """Of groups of three and four: composed less true loss, and upper end less true loss, in points."""
    chance = random.Random(f"groups/{seed}")
    for _ in range(200):
        job, *beside = chance.sample(names, chance.choice((3, 4)))
        expected, real = known.of(job, beside), truth.of(job, beside)
        if expected is not None and real is not None:
            yield expected.pct - real.pct, expected.high - real.pct


@dataclass(frozen=True)
class Timed:
    """How long the searches take for so many jobs."""

    jobs: int
    domains: int
    groups: int
    groupings: int | None  # None: more than are tried
    exhaustive: float | None  # seconds
    milp: float
    same: bool | None


def timed(seed: int) -> Iterator[Timed]:
    """Both searches on random losses, of more and more jobs."""
    for jobs, domains in SIZES:
        names = [f"j{number}" for number in range(jobs)]
        each = Problem(tuple(Job(name, 1, 1) for name in names), (CORES,) * domains, most=TOGETHER)
        if each.misfit():
            each = Problem(each.jobs, (math.ceil(jobs / domains),) * domains, most=math.ceil(jobs / domains))
        groups = Groups(each, Drawn(seed)).every()
        begun = time.perf_counter()
        tried = try_all(each, groups, 1)
        middle = time.perf_counter()
        solved, _ = solve(each, groups, 1)
        end = time.perf_counter()
        say(f"{jobs} jobs: {len(groups)} groups, {middle - begun:.2f} s by trying all, {end - middle:.2f} s by HiGHS")
        same = None if tried is None else math.isclose(tried[0][0].cost[2], solved[0].cost[2], abs_tol=1e-4)
        seen = None if tried is None else tried[1]
        yield Timed(jobs, domains, len(groups), seen, middle - begun if tried else None, end - middle, same)


@dataclass(frozen=True)
class Drawn:
    """Random losses beside single jobs, whose extra times add up."""

    seed: int

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """The loss beside all of these."""
        if ways is not None:
            return None
        pct = loss_pct(combined_loss([_drawn(self.seed, job, other) for other in beside]))
        return Loss(pct, pct, pct, "predicted")


@cache
def _drawn(seed: int, job: str, other: str) -> float:
    return random.Random(f"{seed}/{job}/{other}").expovariate(10)


def describe(report: Report, cases: Sequence[Case]) -> None:
    """A row for each set of programs."""
    report.text(
        f"{counted(len(cases), 'set')} of {PROGRAMS} random programs on {DOMAINS} modelled caches with {CORES} cores "
        f"each. Pairs are known as {LAUNCHES} launches that differ by {100 * SPREAD:g} % show them; larger groups are "
        "composed of pairs. Gains and regret are by the model's truth. Programs with a limit of "
        f"{LIMIT:g} %: {LIMITED} of each set, in a second advice."
    )
    header = ["set", "more than at random %", "more than spreading %", "below the best %", "limits expected to be kept",
              "of these kept", "error of composed losses, points", "their bias", "below their upper end"]  # fmt: skip
    report.table(header, [_row(number, case) for number, case in enumerate(cases, start=1)])


def _row(number: int, case: Case) -> list[str]:
    kept = "–" if math.isnan(case.kept) else f"{100 * case.kept:.0f} %"
    numbers = (case.gain_random, case.gain_spreading, case.regret)
    shares = [
        f"{case.expected} of {LIMITED}",
        kept,
        f"{case.error:.1f}",
        f"{case.bias:+.1f}",
        f"{100 * case.held:.0f} %",
    ]
    return [str(number), *(f"{value:.2f}" for value in numbers), *shares]


def describe_times(report: Report, times: Sequence[Timed]) -> None:
    """A row for each size."""
    report.text(f"The searches on random losses, one job of each kind; trying all ends at {MOST_SEEN} groupings.")
    header = ["jobs", "caches", "groups", "groupings", "trying all s", "HiGHS s", "the same best"]
    rows = [
        [str(each.jobs), str(each.domains), str(each.groups), _or_dash(each.groupings), _seconds(each.exhaustive),
         _seconds(each.milp), "–" if each.same is None else "yes" if each.same else "**no**"]
        for each in times
    ]  # fmt: skip
    report.table(header, rows)


def _or_dash(count: int | None) -> str:
    return "more" if count is None else str(count)


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2f}"


def findings(cases: Sequence[Case]) -> Iterator[Finding]:
    """The key figures, over sets of programs."""
    yield verdicts.mean(
        "throughput of the advice above random placement", [c.gain_random for c in cases], "%", "sets", GAINS
    )
    yield verdicts.mean(
        "throughput of the advice above spreading", [c.gain_spreading for c in cases], "%", "sets", GAINS
    )
    yield verdicts.mean(
        "throughput of the advice below the best grouping", [c.regret for c in cases], "%", "sets", AT_MOST
    )
    yield verdicts.mean("mean absolute error of losses composed of pairs", [c.error for c in cases], "points", "sets")


if __name__ == "__main__":
    run(main)
