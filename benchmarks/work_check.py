"""Is the work that is estimated from the graph of a step what oneDNN logs of the same operations?

For a study with `profile: {primitives: true}` that is measured: operations whose work both show are compared, by type.
It fails where floating-point operations differ, or bytes by more than operands that name a shape have.
"""

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.common import run
from benchmarks.runs import markdown_table
from castmates.analysis.operations.primitives import OPERATION, WORK, estimated_work, logged_work
from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.pipeline.estimates import facts_of_graphs, facts_of_logged
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.profiles import logged_profiles, usual_profiles

MOST = {"flops": 1e-9, "bytes": 1e-3}  # relative differences


def main() -> None:
    """Compare, print how far estimates are from the log, and fail where they are too far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path, nargs="?", default=Path("results/operations"), help="results of a study")
    found = differences(parser.parse_args().study)
    header = ["lead", "type", "operations", *(f"{name}, largest difference as a share" for name in WORK)]
    print(*markdown_table(header, rows_of(found)), sep="\n")
    for name, most in MOST.items():
        known = found[name].dropna()
        if known.empty or known.max() > most:
            far = listed(list(found["operation"][found[name] > most]))
            raise CastmatesError(f"The {name} of the graph and of the log differ: {far or 'no operation has both'}.")
        print(f"{name}: {len(known)} operations differ by a share of {known.max():.1g} at most.")


def differences(study: Path) -> pd.DataFrame:
    """By operation that both show: how far the estimate of each kind of work is from what is logged, as a share."""
    plan, folder = read_plan(study / "plan.json"), StudyFolder(study)
    logged = facts_of_logged(folder, logged_profiles(plan, folder))
    nodes = facts_of_graphs(folder, usual_profiles(plan, folder))["nodes"]
    if logged["logged"] is None or nodes is None:
        raise CastmatesError(
            f"{study} has no launches under oneDNN's log: its study needs 'profile: {{primitives: true}}'."
        )
    both = logged_work(logged["primitives"], logged["logged"]).merge(
        estimated_work(nodes), on=OPERATION, suffixes=("_logged", "")
    )
    if both.empty:
        raise CastmatesError(f"{study} has no operation whose work both its graph and oneDNN's log show.")
    return both[OPERATION].assign(**{name: (both[name] / both[f"{name}_logged"] - 1).abs() for name in WORK})


def rows_of(found: pd.DataFrame) -> list[list[str]]:
    """The table, by lead and type."""
    types = found.groupby(["member", "type"])
    worst = types[WORK].max().assign(count=types.size()).reset_index()
    return [
        [row["member"], row["type"], str(row["count"]), f"{row['flops']:.1e}", f"{row['bytes']:.1e}"]
        for row in worst.to_dict("records")
    ]


if __name__ == "__main__":
    run(main)
