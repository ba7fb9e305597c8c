"""Rules and tables -> findings: what is worth knowing of each lead and mix, how sure it is, and what shows it.

A finding's advice is tried by the first of its changes whose programs the lead runs.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, of_each_launch
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.effects.verdicts import effect_verdicts
from castmates.analysis.findings.conditions import (
    LEAD,
    MIX,
    NOT_KNOWN,
    PLATFORM,
    PROVEN,
    SEEN,
    STATES,
    SUSPECTED,
    Evidence,
    Subject,
    judge,
    looked_at,
    with_subjects,
)
from castmates.analysis.statistics.intervals import columns_of, gained, holm
from castmates.analysis.statistics.welch import welch
from castmates.results.columns.findings import GAINS
from castmates.results.columns.study import frame
from castmates.study.class_names import without_class
from castmates.study.finding_rules import Change, Compared, Rule, Trial
from castmates.study.trying import option_of

FOUND = (PROVEN, SEEN)
TableOf = Callable[[str], pd.DataFrame | str | None]  # why it is not there; None where the study has none of this name


@dataclass(frozen=True)
class Finding:
    """A rule, and how it came out of one lead, of one mix, or of the study."""

    name: str
    rule: Rule
    subject: Subject
    state: str
    evidence: tuple[Evidence, ...]  # of each condition

    @property
    def id(self) -> str:
        """What `castmates advice --try` calls it: `input-bound/dlrm-train`."""
        return "/".join(filter(None, (self.name, self.subject.mix or self.subject.lead)))

    @property
    def found(self) -> bool:
        """Whether it holds, proven or seen."""
        return self.state in FOUND

    @property
    def suspected(self) -> bool:
        """Whether its point is beyond the threshold, and its interval is not."""
        return self.state == SUSPECTED

    @property
    def why(self) -> str:
        """Why nothing is known of it."""
        return next((each.why for each in self.evidence if each.state == NOT_KNOWN), "")


def findings(rules: Mapping[str, Rule], table_of: TableOf) -> list[Finding]:
    """Every rule of every lead or mix that its first table has, the surest first, then in the order of the rules."""
    read: dict[str, pd.DataFrame | str | None] = {}

    def table(name: str) -> pd.DataFrame | str | None:
        if name not in read:
            found = table_of(name)
            read[name] = with_subjects(found) if isinstance(found, pd.DataFrame) else found
        return read[name]

    every = [finding for name, rule in rules.items() for finding in _of_rule(name, rule, table)]
    return sorted(every, key=lambda finding: STATES.index(finding.state))


def _of_rule(name: str, rule: Rule, table_of: TableOf) -> Iterator[Finding]:
    looked = [looked_at(condition, table_of(condition.table)) for condition in rule.when]
    found = [_of_subject(name, rule, subject, looked) for subject in _subjects(rule, looked[0])]
    yield from sorted(found, key=lambda finding: -_excess(finding.evidence[0]))


def _subjects(rule: Rule, rows: pd.DataFrame | str) -> list[Subject]:
    """Whom the rows of the first condition are about; nobody in particular where there are none."""
    if isinstance(rows, str):
        return [Subject()]
    if rule.about == "study":
        return [Subject(platform=str(platform)) for platform in rows[PLATFORM].unique()] or [Subject()]
    named = rows[rows[LEAD] != ""] if rule.about == "lead" else rows[rows[MIX] != ""]
    named = named.assign(**({MIX: ""} if rule.about == "lead" else {}))
    keys = named[[LEAD, MIX, PLATFORM]].drop_duplicates()
    return [Subject(*map(str, key)) for key in keys.itertuples(index=False, name=None)] or [Subject()]


def _of_subject(name: str, rule: Rule, subject: Subject, looked: Sequence[pd.DataFrame | str]) -> Finding:
    evidence = tuple(judge(condition, rows, subject) for condition, rows in zip(rule.when, looked, strict=True))
    state = max((each.state for each in evidence), key=STATES.index)
    return Finding(name, rule, subject, state, evidence)


def _excess(evidence: Evidence) -> float:
    """How many times the threshold, to put the largest first."""
    if math.isnan(evidence.value):
        return -math.inf
    distance = evidence.value - evidence.threshold
    return (distance if evidence.is_above else -distance) / (abs(evidence.threshold) or 1.0)


def change_for(trial: Trial, command: Sequence[str]) -> Change | None:
    """The change that fits a lead with this command line; None where none does."""
    return next((change for change in trial.lead if fits(change, command)), None)


def fits(change: Change, command: Sequence[str]) -> bool:
    """Whether a command line is one of the change's programs, with none of the options that rule it out."""
    if change.programs and not set(change.programs) & set(command):
        return False
    return not any(
        isinstance(cell, Compared) or option_of(command, name) in {str(word) for word in cell}
        for name, cell in change.unless.items()
    )


# The windows of a trial -> what a change of a lead gives, alone and beside its antagonists.
#
# The lead as it is and the changed one run in launches of their own, whose orders are mixed: launches are the sample,
# and the difference of the means of two groups of launches has Welch's interval.

_SCENE = ["beside", "platform"]
_COUNTS = ["mean", "variance", "launches"]


def gains(
    windows: pd.DataFrame, lead: str, changed: str, work: float, beside: Mapping[str, str], margin: float
) -> pd.DataFrame:
    """A row alone and one beside each antagonist; `beside` has the antagonists of each mix by its name. Names of
    leads are without their class of nodes: a trial runs on one of them.

    `work` is how many times the work of a step that the changed lead does in one of its own.
    """
    windows = windows.reset_index(drop=True)  # of several launches, each with its own
    own, other = (_launches(windows, name, beside) for name in (lead, changed))
    shared = own.index.intersection(other.index)
    if shared.empty:
        return frame([], GAINS)
    own, other = own.loc[shared], other.loc[shared]
    difference = welch(own, other.assign(mean=other["mean"] + np.log(work)))
    table = pd.concat([difference, own.add_prefix("own_"), other.add_prefix("other_")], axis=1).reset_index()
    table["p_holm"] = holm(table["p_value"])
    fewest = np.minimum(table["own_launches"], table["other_launches"])
    slower = {"mean": -table["mean"], "low": -table["high"], "high": -table["low"], "launches": fewest}
    verdict = effect_verdicts(table.assign(**slower), margin)
    columns = {
        "study": windows["study"].iloc[0] if "study" in windows else "",
        "lead": lead,
        "changed": changed,
        "unit": _unit(windows, lead),
        "rate": np.exp(table["own_mean"]),
        "changed_rate": np.exp(table["other_mean"]),
        "work": work,
        "launches": table["own_launches"],
        "changed_launches": table["other_launches"],
        "verdict": verdict,
    }
    columns |= columns_of(table, "gain_pct", gained, ends="gain")
    return declared(table.assign(**columns).sort_values("beside"), GAINS)


def _launches(windows: pd.DataFrame, name: str, beside: Mapping[str, str]) -> pd.DataFrame:
    """Of each scene: mean and variance over launches of the logarithm of the rate, and how many launches there are."""
    is_lead = workloads_of(windows["member"]).map(without_class) == name
    scenes = windows["scene"].map({"alone": ""} | {f"corun:{mix}": others for mix, others in beside.items()})
    kept = windows[windows["valid"] & is_lead & (windows["rate"] > 0) & scenes.notna()]
    logs = kept.assign(log=np.log(kept["rate"].to_numpy(dtype=float)), beside=scenes[kept.index].astype("str"))
    means = of_each_launch(logs, _SCENE, ["log"])
    return means.groupby(_SCENE)["log"].agg(["mean", "var", "count"]).set_axis(_COUNTS, axis=1)


def _unit(windows: pd.DataFrame, lead: str) -> str:
    units = windows.loc[windows["workload"] == lead, "unit"]
    return str(units.iloc[0]) if len(units) else ""
