"""What is recommended from an adaptive study, whose looks chose the masks that were measured: how often it errs.

    python -m tests.unit.modelled.test_adaptive_recommendations

prints the sentence's figures in docs/methodology.md.
"""

import math
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.partitions.recommendation import MET, WRONG, recommendations
from castmates.results.columns.partitions import PARETO
from tests.unit.modelled.adaptive_studies import TOGETHER, Came, Setting, play, printed
from tests.unit.modelled.test_adaptive_oracle import SEED, WAYS, loss, text_of

# What masks lose exactly: the worst limits, since the mask that has it is recommended wrongly as often as is allowed.
MASKS = ("split-6", "split-8", "split-9", "split-10")


def recommended(tmp_path, mask, studies):
    """Of studies with the limit at what this mask loses: the share that errs, and the mean of the ways; of the full
    grid too."""
    lost = loss(_setting(tmp_path, 8).true)
    limit = lost[_names(_setting(tmp_path, 8)).index(mask)] - 1e-6  # the mask loses more, by nothing
    setting = _setting(tmp_path, limit)
    rng = np.random.default_rng(SEED)
    drawn = [values for _ in range(0, studies, TOGETHER) for values in setting.drawn(rng, TOGETHER)]
    adaptive = [play(setting, values) for values in drawn]
    full = [Came(np.ones(values.shape, dtype=bool), [], 0) for values in drawn]
    return [_erring(setting, came, drawn, limit) for came in (adaptive, full)]


def _setting(tmp_path, limit):
    return Setting.of(tmp_path, text_of(WAYS, limit=limit))


def _names(setting):
    return [name.split()[-1] for name in setting.names]


def _erring(setting, came, drawn, limit):
    rows = printed(came, drawn)
    partition = rows["cell"].map(dict(enumerate(_names(setting))))
    rows = rows.assign(partition=partition)[partition.str.startswith("split")]
    pareto = pd.DataFrame(
        {
            "mix": rows["study"].astype(str), "partition": rows["partition"], "curve": "split",
            "stage": "search", "platform": "modelled",
            "lead_ways": rows["partition"].str.removeprefix("split-").astype(int), "loss_pct": loss(rows["mean"]),
            "loss_low": loss(rows["low"]), "loss_high": loss(rows["high"]), "freedom": rows["launches"] - 1,
            "launches": rows["launches"],
        }
    )  # fmt: skip
    rest = {name: "" if kind == "str" else 0 for name, kind in PARETO.items() if name not in pareto}
    found = recommendations(pareto.assign(**rest).astype(dict(PARETO)), limit)
    met = found[found["verdict"] == MET]
    true = dict(zip(_names(setting), loss(setting.true), strict=True))
    return float((met["partition"].map(true) > limit).sum() / len(found)), float(met["lead_ways"].mean())


def _assert_seldom(found, studies):
    (errs, ways), (errs_full, ways_full) = found
    allowed = WRONG + 4 * math.sqrt(WRONG / studies)
    assert errs < allowed
    assert errs_full < allowed
    assert ways_full - 0.1 < ways < ways_full + 0.6, "what was not measured is not recommended"


def test_masks_from_some_adaptive_studies_err_seldom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _assert_seldom(recommended(tmp_path, "split-9", TOGETHER), TOGETHER)


@pytest.mark.simulation
@pytest.mark.parametrize("mask", MASKS)
def test_masks_from_adaptive_studies_err_seldom(tmp_path, monkeypatch, mask):
    monkeypatch.chdir(tmp_path)
    _assert_seldom(recommended(tmp_path, mask, 2000), 2000)


if __name__ == "__main__":
    for each in MASKS:
        with tempfile.TemporaryDirectory() as folder:
            for name, (errs, ways) in zip(("adaptive", "full"), recommended(Path(folder), each, 2000), strict=True):
                print(f"{each} {name}: {100 * errs:.2f} % err, {ways:.2f} ways")
