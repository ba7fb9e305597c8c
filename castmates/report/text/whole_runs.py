"""Whether instructions measure the work of a lead: only if its whole runs take the same number of them."""

from collections.abc import Sequence

from castmates.report.launch_record import LaunchRecord
from castmates.report.text.words import counted, plain

ALIKE = 0.02  # of instructions; runs of programs that do not wait in loops differ by far less


def instructions(launches: Sequence[LaunchRecord]) -> list[str]:
    """Sentences on leads whose progress is instructions: runs that differ, or none that was seen whole."""
    by_lead: dict[str, list[tuple[int, int, int]]] = {}
    for record in launches:
        for workload, runs, fewest, most in record.counted_runs:
            by_lead.setdefault(workload, []).append((runs, fewest, most))
    return [sentence for lead, found in by_lead.items() if (sentence := _of_one(plain(lead), found))]


def _of_one(lead: str, found: Sequence[tuple[int, int, int]]) -> str:
    whole = [(runs, fewest, most) for runs, fewest, most in found if runs]
    number = sum(runs for runs, _, _ in whole)
    if number < 2:
        return (
            f"{'Only one' if number else 'No'} whole run of {lead} was seen, so it is not known whether each takes the "
            "same number of instructions. Its loss by instructions is right only if it does."
        )
    fewest, most = min(low for _, low, _ in whole), max(high for _, _, high in whole)
    if most - fewest <= ALIKE * fewest:
        return ""
    return (
        f"Whole runs of {lead} took between {fewest:.3g} and {most:.3g} instructions ({counted(number, 'run')}). "
        "Instructions that it spends while it waits count as work, so its loss is not known by them: name another "
        "'progress' (castmates help add-a-workload)."
    )
