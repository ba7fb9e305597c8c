"""What the terminal shows at the end of a sweep."""

import os
from collections import Counter
from collections.abc import Iterator

from castmates.errors import CastmatesError
from castmates.project import Project
from castmates.results.adaptive_looks import read_adaptive_looks
from castmates.results.bundled_records import RecordReader
from castmates.results.folder import StudyFolder
from castmates.results.looks import precision_words
from castmates.results.named import retry_command
from castmates.results.records import record_or_why, useless
from castmates.study.adaptive_words import saved, summary
from castmates.study.spec import Plan

SHOWN_ELSEWHERE = "CASTMATES_RESULT_SHOWN_ELSEWHERE"  # set by a command that prints the result itself after the sweep


def closing_text(project: Project, plan: Plan) -> str:
    """What came out, what to do next, and where the report is."""
    if os.environ.get(SHOWN_ELSEWHERE):
        return "".join(f" {line}\n" for line in closing_words(project, plan).splitlines())
    folder = project.results
    try:
        answer = folder.answer_file.read_text(encoding="utf-8")
    except OSError:  # only tables were asked for
        answer = ""
    paragraphs = ["".join(f" {line}\n" if line else "\n" for line in answer.splitlines())]
    paragraphs += ["".join(f" {line}\n" for line in closing_words(project, plan).splitlines())]
    if folder.page_file.is_file():
        paragraphs.append(f" Report {folder.page_file.resolve().as_uri()}\n")
    return "\n".join(filter(None, paragraphs))


def closing_words(project: Project, plan: Plan) -> str:
    """Whether the sweep is precise enough, and which launches gave little."""
    folder = project.results
    precision = precision_words(plan, folder, project.study.budget.precision)
    lines = [f"{sentence}\n" for sentence in (precision, *_of_looks(plan, folder)) if sentence]
    files = [folder.record_file(launch) for launch in folder.measured(plan).launches]
    read = RecordReader(folder).read
    reasons = Counter(reason for file in files if (reason := useless(read(file))))
    if reasons:
        few = " and ".join(f"{count} of {len(files)} launches: {reason}" for reason, count in reasons.items())
        lines.append(f"{few}. `{retry_command(project.study_file)}` measures them again.\n")
    return "".join(lines)


def refuse_nothing(project: Project) -> None:
    """End a command with an error where no launch of a study counts: its page has no number."""
    files = project.results.record_files()
    if files and all(useless(record_or_why(file)) for file in files):
        raise CastmatesError(
            f"nothing counts of the {len(files)} launches of {project.study.name}: {project.results.page_file} shows "
            f"why. `{retry_command(project.study_file)}` measures them again."
        )


def _of_looks(plan: Plan, folder: StudyFolder) -> Iterator[str]:
    """What the looks of an adaptive study decided, and saved."""
    if looks := read_adaptive_looks(plan, folder):
        yield summary(looks)
        records = (RecordReader(folder).read(folder.record_file(launch)) for launch in folder.measured(plan).launches)
        yield saved(looks[-1], sum(int(record.get("windows", 0)) for record in records))
