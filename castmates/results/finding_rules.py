"""The rules of findings that hold for a study: ours, those of the folder beside it, and those that it names."""

from collections.abc import Collection, Mapping
from pathlib import Path

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.results.columns.block import BLOCK_TABLES, Columns
from castmates.results.columns.meanings import CONTRACTS
from castmates.results.columns.operations import PROFILE_TABLES
from castmates.results.rule_check import problem, unknown_table
from castmates.study.finding_rules import FindingRules, Rule
from castmates.study.model import Study
from castmates.study.reading import line_of, read

OWN = "findings"  # the folder beside a study


def rules_of(study: Study | None, study_file: Path | None, tables: Collection[str]) -> dict[str, Rule]:
    """By name, in the order in which their findings are shown; a later one replaces an earlier one of its name.

    `tables` are those that the study has, beside those that every version knows.
    """
    return _together(
        [(file, True) for file in _ours()] + [(file, False) for file in own_files(study, study_file)], tables
    )


def check_own(study: Study, study_file: Path) -> None:
    """Refuse files of rules that cannot be read, before anything is measured; results show which tables there are."""
    for file in own_files(study, study_file):
        _read(file, is_ours=True, tables=())


def own_files(study: Study | None, study_file: Path | None) -> list[Path]:
    """The files beside a study, and those that it names."""
    beside = sorted((study_file.parent / OWN).glob("*.yaml")) if study_file else []
    named = [Path(name) for name in (study.findings if study else [])]
    ours = {file.resolve() for file in _ours()} if beside else set()
    return [file for file in dict.fromkeys([*beside, *named]) if file.resolve() not in ours]


def _ours() -> list[Path]:
    return sorted(shipped.findings().glob("*.yaml"))


def contract() -> dict[str, Columns]:
    """The columns of every table that a study may have, by its name."""
    raw = {*BLOCK_TABLES, *PROFILE_TABLES} - {"windows"}
    return {name: getattr(module, name.upper()) for name, module in CONTRACTS.items() if name not in raw}


def _together(files: list[tuple[Path, bool]], tables: Collection[str]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for file, is_ours in files:
        for name, rule in _read(file, is_ours, tables).items():
            if rule is not None:
                rules[name] = rule
            elif rules.pop(name, None) is None:
                raise CastmatesError(
                    f"{file}: 'findings.{name}' is null, which switches a rule off, but no earlier file has it."
                )
    return rules


def _read(file: Path, is_ours: bool, tables: Collection[str]) -> Mapping[str, Rule | None]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise CastmatesError(
            f"{file}: this file of rules cannot be read; 'findings' in a study names files from the folder in which "
            "the sweep runs."
        ) from None
    rules, known = read(FindingRules, text, str(file)).findings, contract()
    for name, rule in rules.items():
        if rule is None:
            continue
        wrong = problem(rule, known)
        if not wrong and not is_ours:  # one of ours may be about a table that not every version writes
            wrong = unknown_table(rule, {*known, *tables})
        if wrong:
            key, what = wrong
            path = tuple(int(part) - 1 if part.isdecimal() else part for part in key.split("."))
            line = line_of(text, str(file), ("findings", name, *path))
            raise CastmatesError(f"{file}, line {line}: 'findings.{name}.{key}' {what}.")
    return rules
