"""Is a difference between two numbers of samples more than the luck of sampling?

Alone and beside others, a frame has n1 and n2 samples in e1 and e2 steps (or seconds). If nothing differs, n1 of
their sum is binomial with the share e1 / (e1 + e2). The root of the deviance from that, with the sign of the
difference, is near normal even for few samples. Where a scene was recorded several times, samples may vary more
between recordings than Poisson's law has it: the deviance is divided by how much more.
"""

import math

import numpy as np

from castmates.timeline.flames.profile import Profile

ENOUGH = 10  # samples of both sides together; of fewer nothing is claimed
BEYOND = 2.0  # roots of the deviance: of frames that do not differ, one in twenty is beyond


def root_of_deviance(before: float, after: float, before_in: float, after_in: float, dispersion: float = 1.0) -> float:
    """How far two numbers of samples are from equal rates; above 0 where the second rate is higher."""
    total = before + after
    if total <= 0 or before_in <= 0 or after_in <= 0:
        return 0.0
    expected = total * after_in / (before_in + after_in)
    deviance = 2 * (_part(after, expected) + _part(before, total - expected))
    return math.copysign(math.sqrt(max(deviance, 0.0) / dispersion), after - expected)


def _part(seen: float, expected: float) -> float:
    return seen * math.log(seen / expected) if seen > 0 else 0.0


def is_noise(before: float, after: float, root: float) -> bool:
    """Whether a difference may be luck."""
    return before + after < ENOUGH or abs(root) < BEYOND


def dispersion(profiles: tuple[Profile, ...], per: str) -> float:
    """How much more samples of functions vary between recordings of a scene than Poisson's law has it; at least 1."""
    excess, freedom = 0.0, 0
    for each in profiles:
        exposure = np.array([one.steps if per == "step" else one.t1_ns - one.t0_ns for one in each.stretches], float)
        if len(exposure) < 2 or exposure.sum() <= 0:
            continue
        functions = each.stacks.assign(function=each.stacks["stack"].str.rpartition(";")[2])
        seen = functions.pivot_table(index="function", columns="stretch", values="samples", aggfunc="sum", fill_value=0)
        counts = seen.reindex(columns=range(len(exposure)), fill_value=0).to_numpy(float)
        counts = counts[counts.sum(axis=1) >= ENOUGH]
        expected = counts.sum(axis=1, keepdims=True) * exposure / exposure.sum()
        kept = exposure > 0
        excess += float((((counts - expected) ** 2)[:, kept] / expected[:, kept]).sum())
        freedom += len(counts) * (int(kept.sum()) - 1)
    return max(1.0, excess / freedom) if freedom else 1.0
