"""Whether a rule fits the tables that there are: names of tables and columns, and the words of its sentence."""

from collections.abc import Collection, Mapping

from castmates.results.columns.contract import Columns
from castmates.study.finding_rules import PLACE, Condition, Rule
from castmates.study.reading import did_you_mean

NUMERIC = ("float64", "int64", "Int64", "bool")
WORDS = ("study", "lead", "beside", "mix", "antagonists", "threshold")
ADVICE = "recommendations"  # the table whose rows have `bargain`: what a mask gives, and what the others pay


def problem(rule: Rule, columns_of: Mapping[str, Columns]) -> tuple[str, str] | None:
    """The key of the first thing that is wrong with a rule, and what it is; None where it fits.

    A table that nothing is known of is no problem here: its findings are not known.
    """
    for number, condition in enumerate(rule.when, start=1):
        columns = columns_of.get(condition.table)
        wrong = _wrong(condition, columns) if columns is not None else None
        if wrong:
            return f"when.{number}.{wrong[0]}", wrong[1]
    first = columns_of.get(rule.when[0].table)
    numbers = ["number", *(f"number{place}" for place in range(2, len(rule.when) + 1))]
    more = ["bargain"] if rule.when[0].table == ADVICE else []
    known = None if first is None else [*WORDS, *numbers, *more, *first]
    command = rule.trial.command if rule.trial else None
    for key, text in (("sentence", rule.sentence), ("try.command", command or ""), ("look", rule.look or "")):
        for word in PLACE.findall(text):
            if known is not None and word not in known:
                return key, f"has {{{word}}}, but the row has no such column{did_you_mean(word, known)}"
    return None


def unknown_table(rule: Rule, tables: Collection[str]) -> tuple[str, str] | None:
    """The key of the first table that no version knows, and the remark on it."""
    for number, condition in enumerate(rule.when, start=1):
        if condition.table not in tables:
            meant = did_you_mean(condition.table, tables)
            return f"when.{number}.table", f"is '{condition.table}', but no study has such a table{meant}"
    return None


def _wrong(condition: Condition, columns: Columns) -> tuple[str, str] | None:
    known = {**columns, **({"cpus": "float64"} if "member" in columns else {})}
    numbers = {"number": condition.number, "per": condition.per}
    numbers |= {"interval": condition.interval[0], "interval.2": condition.interval[1]} if condition.interval else {}
    named = {f"{key}.{column}": column for key in ("rows", "where", "without") for column in getattr(condition, key)}
    for key, column in (*numbers.items(), *named.items()):
        if column is None:
            continue
        if column not in known:
            return key.partition(".2")[0], (
                f"names the column '{column}', which the table '{condition.table}' does not have"
                f"{did_you_mean(column, known)}"
            )
        if key in numbers and known[column] not in NUMERIC:
            return key, f"names the column '{column}', which holds words and no numbers"
    return None
