"""The command that measures a study, or more of it, as it can be copied into a shell."""

from castmates.report.results import Results
from castmates.results.named import study_argument


def sweep_command(results: Results, launches: int | None = None) -> str:
    """What measures the study, with so many launches: in a clone by make; "" where the study file is not known."""
    if not results.study_file:
        return ""
    root, study = results.folder.path.resolve().parent.parent, study_argument(results.study_file)
    if (root / "Makefile").is_file() and (root / "castmates").is_dir():  # a clone: make sets everything up
        return "make sweep" + study.replace(" ", " STUDY=", 1) + (f" LAUNCHES={launches}" if launches else "")
    return f"castmates sweep{study}" + (f" --launches {launches}" if launches else "")
