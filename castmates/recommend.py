"""The tables of a study, and the fresh blocks of those that confirm it -> what each partition gives, on disk."""

from pathlib import Path
from typing import TYPE_CHECKING

from castmates.analysis.frontier import pareto_table
from castmates.analysis.recommendation import recommendations
from castmates.analysis.sensitivity import knees, sensitivity_table
from castmates.confirm import confirmed_rows
from castmates.errors import CastmatesError
from castmates.estimate import write_table
from castmates.study.spec import Plan
from castmates.tables import EFFECTS, WINDOWS, Columns, frame
from castmates.tables_of_partitions import PARETO, RECOMMENDATIONS

if TYPE_CHECKING:
    import pandas as pd


def write_tables(plan: Plan, results: Path, limit_pct: float | None, output: Path) -> None:
    """Write sensitivity, knees, Pareto and, where there is a limit, recommendations."""
    effects, windows = read_table(results, "effects", EFFECTS), read_table(results, "windows", WINDOWS)
    curves = sensitivity_table(plan, effects)
    pareto = _pareto(plan, results, effects, windows)
    tables = {
        "sensitivity": curves,
        "knees": knees(curves, _ways(plan)),
        "pareto": pareto,
        "recommendations": of_limit(plan, pareto, limit_pct),
    }
    for name, table in tables.items():
        write_table(table, output / name)


def of_limit(plan: Plan, pareto: "pd.DataFrame", limit_pct: float | None) -> "pd.DataFrame":
    """What is recommended for a limit; nothing without one, and nothing where no partition was asked for."""
    if limit_pct is None or not any(mix.partitions for mix in plan.mixes):
        return frame([], RECOMMENDATIONS)
    return recommendations(pareto, limit_pct, _ways(plan))


def read_table(results: Path, name: str, columns: Columns) -> "pd.DataFrame":
    """A table of a study that was analysed."""
    import pandas as pd

    file = results / "tables" / f"{name}.parquet"
    try:
        table = pd.read_parquet(file, columns=list(columns))
    except FileNotFoundError:
        raise CastmatesError(f"{file} is not there; run the study's sweep first (snakemake).") from None
    except (OSError, ValueError, KeyError) as problem:
        why = str(problem).splitlines()[0].rstrip(".:")
        raise CastmatesError(f"{file} cannot be read ({why}); remove it, and run the sweep again.") from None
    return frame([], columns) if table.empty else table.astype(dict(columns))


def _pareto(plan: Plan, results: Path, effects: "pd.DataFrame", windows: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    searched = pareto_table(plan, windows, effects)
    return pd.concat([searched, confirmed_rows(plan, results)], ignore_index=True).astype(dict(PARETO))


def _ways(plan: Plan) -> int | None:
    return plan.cache.ways if plan.cache is not None else None
