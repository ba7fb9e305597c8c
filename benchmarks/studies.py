"""A shipped study, run whole: what it found, beside the aims that it was made for.

    python -m benchmarks.studies config/studies/service.yaml

What was measured already is not measured again. With `--full`, an adaptive study is also held against the full grid,
which is measured as a study beside it.
"""

import argparse
import math
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import castmates
from benchmarks import sweeps
from benchmarks.common import Report, Span, run
from benchmarks.study_parts import losses, parts
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.report.answer.answer import answer
from castmates.report.results import Results


def main() -> None:
    """Sweep what is missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the study file")
    parser.add_argument("--full", action="store_true", help="measure the full grid of an adaptive study too")
    given = parser.parse_args()
    castmates_run("sweep", given.study)
    results = castmates.load(given.study)
    if results.study and results.study.place.jobs:
        castmates_run("advice", given.study, "--place", "--confirm")
    title = results.study.title if results.study else results.name
    report = Report(f"Run whole: {title}", "studies", span_of(results))
    describe(report, results, full_grid(results) if given.full else None)
    report.print()


def castmates_run(*words: str | Path) -> None:
    """Run a command of Castmates, which measures what is missing."""
    done = subprocess.run([sys.executable, "-m", "castmates", *map(str, words)], stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise CastmatesError(f"castmates {shlex.join(map(str, words))} ended with {done.returncode} (see above).")


def full_grid(results: Results) -> Results:
    """The study without looks, with as many launches as it may have, under another name."""
    if results.study is None or not results.study.budget.adaptive:
        raise CastmatesError(f"{results.name} is no adaptive study; leave out --full.")
    budget = results.study.budget
    study = results.study.model_copy(
        update={"name": f"{results.name}-full", "budget": budget.without_looks(budget.most_launches)}
    )
    file = results.folder.path / "full.yaml"
    replace_text(file, study.text("Written by `python -m benchmarks.studies --full`: the full grid."))
    castmates_run("sweep", file)
    return castmates.load(file)


def span_of(results: Results) -> Span:
    """When its launches ran."""
    about = sweeps.about(results.folder.path, results.study.margin if results.study else math.nan)
    return Span(about.begun.astimezone(), about.minutes, about.commit)


def describe(report: Report, results: Results, full: Results | None) -> None:
    """The question, the answer, every loss, and what else this kind of study is there for."""
    results = replace(results, strict=False)  # a table that the study does not ask for is empty
    found = answer(results)
    report.text(*([f"*{found.question}*"] if found.question else []))
    report.text(" ".join(filter(None, [found.headline, found.below])), measured_words(results))
    report.items([f"{card.mark} {card.title}: {card.text}" for card in found.cards])
    if not results.adaptive_looks:
        report.text(
            "Losses of the leads against alone, in per cent, ± half of the 95 % interval between launches; bold: "
            "proven (Holm's adjustment over the study)."
        )
        report.table(*losses(results))
    for part in parts(results, full):
        report.text(*part.paragraphs)
        if part.rows:
            report.table(part.header, part.rows)
        report.found(*part.findings)


def measured_words(results: Results) -> str:
    """How much was measured, and what was thrown away."""
    windows = results.windows.drop_duplicates(["cohort", "launch", "window"])
    platforms = " and ".join(sorted(set(results.windows["platform"])))
    launches = f"{len(results.launches)} launches, {len(windows)} windows"
    return f"{launches} ({int((~windows['valid']).sum())} of them rejected), {platforms}."


if __name__ == "__main__":
    run(main)
