"""Grids of programs on the modelled machine: what each truly loses, and the table of effects that a study would have.

Programs are drawn at random: some compute, some come back to working sets of half a MiB to 24 MiB, some stream.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from castmates.analysis.prediction.pairs import RATE
from castmates.analysis.statistics.intervals import Floats, quantile
from castmates.runner.modelled.balance import Actor, Grant, balance
from castmates.study.modelled import MachineModel, WorkingSet, WorkloadModel
from castmates.study.spec import UNMANAGED

MACHINE = MachineModel(cores=8, ways=12, way_size="1.5 MiB", bandwidth="16 GB")
LAUNCHES, SCATTER = 5, 0.0125  # of a study; how far the logarithms of a loss scatter between launches
COMPUTE, ACCESSES, PARALLEL = (0.0002, 0.006), (30_000.0, 400_000.0), (1.0, 16.0)
CALM, STREAMING = 0.1, 0.2  # shares of programs that hardly use the cache, and that only stream
DIALS = {
    "dial-6mib": WorkloadModel(
        compute=1e-6, accesses=100_000, parallel=16, reuse=[WorkingSet(size="6 MiB", share=1.0)]
    ),
    "dial-12mib": WorkloadModel(
        compute=1e-6, accesses=100_000, parallel=16, reuse=[WorkingSet(size="12 MiB", share=1.0)]
    ),
    "dial-6gbs": WorkloadModel(compute=1000 * 64 / 6e9, accesses=1000, parallel=1000),
}
REPORTER = "reporter"
_REPORTING = WorkloadModel(
    compute=0.0005,
    accesses=100_000,
    parallel=2,
    reuse=[WorkingSet(size="4 MiB", share=0.5), WorkingSet(size="6 MiB", share=0.4)],
)
Mix = tuple[str, ...]  # the lead, then its antagonists


@dataclass
class Grid:
    """A machine with programs, whose losses are known."""

    programs: Mapping[str, WorkloadModel]
    names: Sequence[str]  # of the grid: its leads and its antagonists
    _truth: dict[Mix, tuple[float, ...]] = field(default_factory=dict)

    def truth(self, mix: Mix) -> tuple[float, ...]:
        """Each member's logarithm of the slowdown, in their order."""
        if mix not in self._truth:
            if len(mix) == 1:
                return (0.0,)
            alone = [self._rates((name,))[0] for name in mix]
            self._truth[mix] = tuple(math.log(a / b) for a, b in zip(alone, self._rates(mix), strict=True))
        return self._truth[mix]

    def _rates(self, mix: Mix) -> list[float]:
        everything = Grant((MACHINE.full,) * MACHINE.domains)
        actors = [Actor.on(MACHINE, f"{cpu}", self.programs[name], (cpu,), everything) for cpu, name in enumerate(mix)]
        truth = balance(actors, MACHINE).truth()
        return [float(str(truth[actor.name]["steps_per_second"])) for actor in actors]


def grid(size: int, rng: np.random.Generator) -> Grid:
    """So many random programs, and beside them dials and a reporter."""
    names = [f"p{number:02d}" for number in range(size)]
    programs = {name: _program(rng) for name in names}
    return Grid({**programs, **DIALS, REPORTER: _REPORTING}, names)


def measured(grid_: Grid, mixes: Iterable[Mix], rng: np.random.Generator, both: bool = True) -> pd.DataFrame:
    """The rows of effects that a study of these mixes would have; `both`: the antagonists' own losses too."""
    rows = []
    for mix in mixes:
        about = {
            "mix": "+".join(mix),
            "lead": mix[0],
            "antagonists": "+".join(mix[1:]),
            "partition": UNMANAGED,
            "metric": RATE,
        }
        for place, (name, true) in enumerate(zip(mix, grid_.truth(mix), strict=True)):
            if place and not both:
                break
            role = "antagonist" if place else "lead"
            ends = _estimated(true + rng.normal(0, SCATTER, LAUNCHES))
            rows.append({**about, "role": role, "member": f"{name}@{place}", "baseline": "alone", **ends})
    return pd.DataFrame(rows)


def _estimated(logs: Floats) -> dict[str, float]:
    """A loss with the t interval between launches, as effects have it."""
    mean = float(logs.mean())
    half = float(quantile(np.array([len(logs) - 1.0]))[0] * logs.std(ddof=1) / math.sqrt(len(logs)))
    slowdowns = {"slowdown": mean, "slowdown_low": mean - half, "slowdown_high": mean + half}
    losses = {"loss_pct": mean, "loss_low": mean - half, "loss_high": mean + half}
    return {
        **{name: math.exp(log) for name, log in slowdowns.items()},
        **{name: -100 * math.expm1(-log) for name, log in losses.items()},
        "launches": len(logs),
        "freedom": len(logs) - 1.0,
    }


def _program(rng: np.random.Generator) -> WorkloadModel:
    compute, accesses, parallel = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (COMPUTE, ACCESSES, PARALLEL))
    kind = float(rng.random())
    sets: list[WorkingSet] = []
    if kind > STREAMING:
        shares = rng.dirichlet(np.ones(int(rng.integers(2, 4))))[1:]
        sizes = [rng.uniform(0.5, 24 if number else 8) for number in range(len(shares))]
        sets = [
            WorkingSet(size=f"{size:.2f} MiB", share=round(0.98 * float(share), 4))
            for size, share in zip(sizes, shares, strict=True)
        ]
    return WorkloadModel(
        compute=compute,
        accesses=int(accesses / 20 if kind > 1 - CALM else accesses),
        parallel=parallel,
        writes=float(rng.uniform(0, 0.4)),
        reuse=sets,
    )
