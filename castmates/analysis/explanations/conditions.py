"""Which scenes are rows of the tables of latencies, and what each of them is compared with."""

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import WITHOUT_PARTITION, mix_contrasts
from castmates.analysis.effects.system import ALONE
from castmates.analysis.keys import MEMBER, MIX
from castmates.study.spec import UNMANAGED, Plan


def conditions(plan: Plan) -> pd.DataFrame:
    """Which scene of a cohort is which row of the table, and which scene is its baseline there."""
    contrasts = mix_contrasts(plan)
    scenes = contrasts[contrasts["baseline"] == ALONE].assign(kind="corun")
    scenes.loc[scenes["antagonists"] == "", "kind"] = "alone"
    bases = contrasts[contrasts["baseline"] != WITHOUT_PARTITION].assign(scene=contrasts["baseline_scene"], mix="")
    bases = bases.assign(
        kind=bases["baseline_scene"].str.extract("^([a-z-]+)", expand=False),
        partition=bases["partition"].where(bases["baseline"].str.contains("@"), UNMANAGED),
        # A placebo is compared with alone too.
        baseline_scene=np.where(bases["role"] == "lead", "alone", bases["baseline_scene"]),
    )
    table = pd.concat([bases, scenes], ignore_index=True)
    table = table.drop_duplicates([*MEMBER, *MIX])
    under = np.where(table["partition"] == UNMANAGED, "", "@" + table["partition"])
    label = table["scene"].where(table["kind"] != "corun", "corun:" + table["mix"] + under)
    table = table.assign(label=label, baseline=ALONE)
    table.loc[table["scene"] == table["baseline_scene"], "baseline"] = ""
    table["row"] = table.groupby(["member", "label", "mix"], sort=False).ngroup()
    return table[["row", *MEMBER, "baseline_scene", "role", "kind", "label", *MIX, "baseline"]]
