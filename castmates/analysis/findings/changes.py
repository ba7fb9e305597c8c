"""Which change of a lead tries a finding's advice: the first whose programs the lead runs."""

from collections.abc import Sequence

from castmates.study.finding_rules import Change, Compared, Trial
from castmates.study.trying import option_of


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
