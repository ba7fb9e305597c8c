"""What is worth knowing of a study: the rules that hold for it, and what they find in its tables."""

from pathlib import Path

import pandas as pd

from castmates.analysis.findings.findings import Finding, findings
from castmates.report.results import Results
from castmates.results.columns.registry import TABLES
from castmates.results.finding_rules import rules_of

FOUND = "_findings"  # where results keep them, as they keep each table that was read


def findings_of(results: Results) -> list[Finding]:
    """Every rule on tables that the study asks for, and how it came out of each lead and mix; the surest first.

    Found once, and kept by the results.
    """
    held = vars(results)
    if FOUND not in held:
        file = Path(results.study_file) if results.study_file else None
        rules = rules_of(results.study, file, {table.stem for table in results.folder.tables.glob("*.parquet")})
        asked = {
            name: rule
            for name, rule in rules.items()
            if all(each.table not in TABLES or table_of(results, each.table) is not None for each in rule.when)
        }
        held[FOUND] = findings(asked, lambda name: table_of(results, name))
    found: list[Finding] = held[FOUND]
    return found


def table_of(results: Results, name: str) -> pd.DataFrame | None:
    """A table of the study by its name; None where there is none, or where it is left from a key that is gone."""
    if name in TABLES and TABLES[name].rule:
        table: pd.DataFrame = getattr(results, name)
        return table if results.has(name) or len(table) else None
    file = results.folder.table_file(name)
    return pd.read_parquet(file) if file.is_file() else None
