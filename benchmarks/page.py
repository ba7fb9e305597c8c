"""The page of benchmarks, docs/benchmarks.md, written from the runs that are kept: `python -m benchmarks.page`."""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import sweeps
from benchmarks.commands import COMMANDS, Command
from benchmarks.common import run
from benchmarks.machine import ROOT, RUNS
from benchmarks.runs import FOLDER, Run, kept, markdown_table
from benchmarks.verdicts import Finding, Verdict
from castmates.files import replace_text
from castmates.study.spec import PROTOCOL

PAGE = ROOT / "docs" / "benchmarks.md"
INTRO = f"""# What the instrument itself can do

`make benchmarks` writes this page from the runs that it keeps in `{RUNS}`; do not edit it by hand.
Each section has the newest run of its command; its head names the machine, the commit and the hour. Earlier runs of
the same command and the same way of measuring are shown beside it as repetitions. Absolute times apply to that
machine and hour only: read the ratios. Both sides of a ratio alternated within one run.

A verdict needs a 95 % interval over launches, rounds or repetitions. An aim is *met* if the whole interval lies
inside it, *missed* if the whole interval lies outside, and *unresolved* otherwise. Without an interval it is *one
run, no verdict*. A claim holds if every repetition shows it.
"""
FIRST = "truth"  # whether losses are true comes before how narrow their intervals are
DIFFER = "repetitions differ"
NOW, MODELLED, EARLIER = "On real machines", "On the modelled machine", "By an earlier protocol"
ABOUT = {
    NOW: "",
    MODELLED: "The truth is a model's, and so are the machine's faults: these aims say nothing of a real one.\n",
    EARLIER: "Measured in another way than launches are now: to be repeated.\n",
}
GROUPS = (Verdict.MET, Verdict.MISSED, Verdict.UNRESOLVED, DIFFER, Verdict.NONE)


@dataclass(frozen=True)
class Claim:
    """What the newest run shows of an aim, and what every run shows."""

    title: str
    finding: Finding
    verdicts: tuple[Verdict, ...]  # by run, the oldest first
    kind: str = NOW

    @property
    def standing(self) -> str:
        """The verdict that every run shows."""
        return self.verdicts[0] if len(set(self.verdicts)) == 1 else DIFFER

    def line(self) -> str:
        """An entry below the section's title."""
        assert self.finding.aim is not None
        aim = self.finding.aim.words(self.finding.unit)
        return f"  - {self.finding.what}: {self.finding.figures()}; aim: {aim}; {self.shown()}"

    def shown(self) -> str:
        """In how many runs."""
        if self.standing == DIFFER:
            counts = (f"{one} in {self.verdicts.count(one)}" for one in dict.fromkeys(self.verdicts))
            return f"{', '.join(counts)} of {len(self.verdicts)} runs"
        return "in its only run" if len(self.verdicts) == 1 else f"in each of {len(self.verdicts)} runs"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=FOLDER, help="folder of the runs that are kept")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page")
    given = parser.parse_args()
    write(given.runs.resolve(), given.output.resolve())


def write(folder: Path = FOLDER, output: Path = PAGE, commands: Sequence[Command] = COMMANDS) -> None:
    """Write the page from what is kept."""
    runs = {command.name: kept(command.name, folder) for command in commands}
    replace_text(output, page(runs, commands, sweeps.kept(folder / sweeps.PLACE.name)))


def page(
    runs: Mapping[str, Sequence[Run]], commands: Sequence[Command] = COMMANDS, swept: Sequence[sweeps.Sweep] = ()
) -> str:
    """The whole page."""
    measured = [(command, repetitions(runs[command.name])) for command in commands if runs.get(command.name)]
    absent = [command for command in commands if not runs.get(command.name)]
    parts = [INTRO, *_aims([claim for _, one in measured for claim in claims(one)]), *_absent(absent)]
    sections = {command: _section(command, one) for command, one in measured}
    first = [sections.pop(command) for command in list(sections) if command.module == FIRST]
    return "\n".join([*parts, *first, *sweeps.section(swept), *sections.values()])


def repetitions(runs: Sequence[Run]) -> list[Run]:
    """The newest run, and before it the earlier ones of the same command and the same way of measuring."""
    newest = runs[-1]
    return [one for one in runs if (one.command, one.protocol) == (newest.command, newest.protocol)]


def claims(runs: Sequence[Run]) -> list[Claim]:
    """What is claimed about each aim of the newest run; a run that lacks it, or had another aim, is left out."""
    found = []
    for finding in runs[-1].findings:
        same = [one for run in runs for one in run.findings if (one.what, one.aim) == (finding.what, finding.aim)]
        verdicts = tuple(one.verdict for one in same if one.verdict is not None)
        if verdicts:
            found.append(Claim(runs[-1].title, finding, verdicts, _kind(runs[-1], finding)))
    return found


def _kind(newest: Run, finding: Finding) -> str:
    """Of which machine, and of which way of measuring, a finding is."""
    if newest.protocol != PROTOCOL:
        return EARLIER
    return MODELLED if "modelled" in f"{newest.title} {finding.what}".lower() else NOW


def anchor(title: str) -> str:
    """The name by which GitHub links to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _aims(found: Sequence[Claim]) -> Iterable[str]:
    if not found:
        return
    yield "## Aims and results\n"
    for kind, about in ABOUT.items():
        own = [claim for claim in found if claim.kind == kind]
        if own:
            yield f"### {kind}\n"
            yield from filter(None, [about])
        for group in GROUPS:
            members = [claim for claim in own if claim.standing == group]
            if members:
                yield f"**{group.capitalize()}**: {len(members)} of {len(own)}.\n"
                for title in dict.fromkeys(claim.title for claim in members):
                    lines = [claim.line() for claim in members if claim.title == title]
                    yield "\n".join([f"- [{title}](#{anchor(title)})", *lines])
                yield ""


def _absent(commands: Sequence[Command]) -> Iterable[str]:
    if commands:
        names = ", ".join(f"`{command.name}`" for command in commands)
        yield f"**Not measured yet**: {names} (`make benchmarks` measures them).\n"


def _section(command: Command, runs: Sequence[Run]) -> str:
    """The newest run in full, and all of them side by side."""
    return "\n".join([runs[-1].markdown(), *_repeated(runs), *_still_due(command, runs), ""])


def _repeated(runs: Sequence[Run]) -> list[str]:
    if len(runs) == 1 or not runs[-1].findings:
        return []
    standing = {claim.finding.what: f"**{claim.standing}**" for claim in claims(runs)}
    rows = [
        [one.what, *(_cell(run, one) for run in runs), standing.get(one.what, "")]
        for one in runs[-1].findings
    ]  # fmt: skip
    heads = [f"{run.begun:%Y-%m-%d %H:%M}, {run.commit}" for run in runs]
    return ["", f"Repeated, {len(runs)} runs; a claim holds if every one shows it.", "",
            *markdown_table(["", *heads, "in every run"], rows)]  # fmt: skip


def _cell(run: Run, finding: Finding) -> str:
    same = next((one for one in run.findings if (one.what, one.aim) == (finding.what, finding.aim)), None)
    if same is None:
        return "–"
    return f"{same.figures()}{f': {same.verdict}' if same.verdict else ''}"


def _still_due(command: Command, runs: Sequence[Run]) -> list[str]:
    if len(runs) >= command.hours:
        return []
    return ["", f"To be repeated in {command.hours} separate hours; {len(runs)} so far."]


if __name__ == "__main__":
    run(main)
