"""The rules of findings that hold for a study: ours, those of the folder beside it, and those that it names."""

import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import written_text
from castmates.results.columns.contract import Columns
from castmates.results.columns.registry import TABLES
from castmates.results.named import rules_beside
from castmates.study.finding_rules import PLACE, Condition, FindingRules, Rule
from castmates.study.model import Study
from castmates.study.reading import did_you_mean, line_of, read_keys


def rules_of(study: Study | None, study_file: Path | None, tables: Collection[str]) -> dict[str, Rule]:
    """By name, in the order in which their findings are shown; a later one replaces an earlier one of its name.

    `tables` are those that the study has, beside those that every version knows.
    """
    ours = [(file, _fitting(file)) for file in _ours()]
    return _together([*ours, *((file, _read(file, tables)) for file in own_files(study, study_file))])


def check_own(study: Study, study_file: Path) -> None:
    """Refuse files of rules that cannot be read, before anything is measured; results show which tables there are."""
    for file in own_files(study, study_file):
        _read(file, tables=None)


def own_files(study: Study | None, study_file: Path | None) -> list[Path]:
    """The files beside a study, and those that it names."""
    beside = rules_beside(study_file) if study_file else []
    named = [Path(name) for name in (study.findings if study else [])]
    ours = {file.resolve() for file in _ours()} if beside else set()
    return [file for file in dict.fromkeys([*beside, *named]) if file.resolve() not in ours]


def _ours() -> list[Path]:
    return sorted(shipped.findings().glob("*.yaml"))


def contract() -> dict[str, Columns]:
    """The columns of every table that a study may have, by its name."""
    return {name: table for name, table in TABLES.items() if table.rule}


def _together(files: Iterable[tuple[Path, Mapping[str, Rule | None]]]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for file, those in files:
        for name, rule in those.items():
            if rule is not None:
                rules[name] = rule
            elif rules.pop(name, None) is None:
                raise CastmatesError(
                    f"{file}: 'findings.{name}' is null, which switches a rule off, but no earlier file has it."
                )
    return rules


def _fitting(file: Path) -> Mapping[str, Rule | None]:
    """Our rules, without those that fit no table: such a mistake of ours must not cost anybody a report."""
    text, rules = _text_and_rules(file)
    known = {name: _mistake(file, text, name, rule, None) for name, rule in rules.items()}
    for sentence in filter(None, known.values()):
        logging.getLogger(__name__).warning("%s The rule is left out.", sentence)
    return {name: rule for name, rule in rules.items() if not known[name]}


def _read(file: Path, tables: Collection[str] | None) -> Mapping[str, Rule | None]:
    """The rules of a user's file; `tables` are those of the study, None where they are not known yet."""
    text, rules = _text_and_rules(file)
    for name, rule in rules.items():
        if sentence := _mistake(file, text, name, rule, tables):
            raise CastmatesError(sentence)
    return rules


def _text_and_rules(file: Path) -> tuple[str, Mapping[str, Rule | None]]:
    text = written_text(file, "this file of rules")
    return text, read_keys(FindingRules, text, str(file)).findings


def _mistake(file: Path, text: str, name: str, rule: Rule | None, tables: Collection[str] | None) -> str:
    """What is wrong with a rule, and in which line; "" where it fits the tables that there are."""
    known = contract()
    wrong = problem(rule, known) if rule else None
    if rule and not wrong and tables is not None:
        wrong = unknown_table(rule, {*known, *tables})
    if not wrong:
        return ""
    key, what = wrong
    path = tuple(int(part) - 1 if part.isdecimal() else part for part in key.split("."))
    return f"{file}, line {line_of(text, str(file), ('findings', name, *path))}: 'findings.{name}.{key}' {what}."


# Whether a rule fits the tables that there are: names of tables and columns, and the words of its sentence.

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
