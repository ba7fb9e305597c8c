"""The command that measures a study, or more of it, as it can be copied into a shell."""

from castmates.report.results import Results
from castmates.results.named import study_argument


def sweep_command(results: Results, launches: int | None = None) -> str:
    """What measures the study, with so many launches; "" where the study file is not known."""
    if not results.study_file:
        return ""
    return f"castmates sweep{study_argument(results.study_file)}" + (f" --launches {launches}" if launches else "")
