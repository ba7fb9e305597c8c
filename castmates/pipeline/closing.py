"""What the terminal shows at the end of a sweep."""

from collections import Counter

from castmates.project import Project
from castmates.results.looks import precision_words
from castmates.results.records import read_record, useless
from castmates.study.spec import Plan


def closing_words(project: Project, plan: Plan) -> str:
    """Whether the sweep is precise enough, and which blocks gave little."""
    folder = project.results
    precision = precision_words(plan, folder, project.study.budget.precision)
    lines = [f"{precision}\n"] if precision else []
    files = [folder.record_file(block) for block in folder.measured(plan).blocks]
    reasons = Counter(reason for file in files if (reason := useless(read_record(file))))
    if reasons:
        few = " and ".join(f"{count} of {len(files)} blocks: {reason}" for reason, count in reasons.items())
        lines.append(
            f"{few}. The report shows why; `castmates retry` forgets them, and the next sweep measures them again.\n"
        )
    return "".join(lines)
