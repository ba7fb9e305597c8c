"""The pressure of a program as a setting of a dial: the one beside which the reporter loses as much (Bubble-Up)."""

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from castmates.analysis.partitions.interpolation import monotone
from castmates.analysis.prediction.observed import Seen
from castmates.study.dials import Dial


def equivalent(pressed: Seen | None, beside: Mapping[str, Seen], dials: Mapping[str, Dial], kind: str) -> float:
    """The setting of a kind of dial that costs a reporter what it lost beside a program.

    `beside` has what it lost beside dials. NaN where fewer than two settings were measured, where the loss is not
    between theirs, and where the two settings around it do not differ for certain: then many would do.
    """
    curve = sorted((dials[name].amount, name) for name in beside if name in dials and dials[name].kind == kind)
    if pressed is None or len({amount for amount, _ in curve}) < 2:
        return math.nan
    known = [beside[name] for _, name in curve]
    weights = np.array([float(max(each.launches, 1)) for each in known])
    logs = -monotone(np.array([-each.log for each in known]), weights)
    for place, (below, above) in enumerate(pairwise(known)):
        low, high = logs[place], logs[place + 1]
        if low <= pressed.log <= high and below.high < above.low:
            share = (pressed.log - low) / (high - low)
            return curve[place][0] + float(share) * (curve[place + 1][0] - curve[place][0])
    return math.nan
