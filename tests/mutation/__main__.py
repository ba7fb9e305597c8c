"""`python -m tests.mutation run | compare`: see README.md."""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tests.mutation import ROOT, sample, selection, trial
from tests.mutation.comparison import IDENTITY, compared, score_words
from tests.mutation.mutants import Mutant, Site

CONTROLS = 2  # of an area: their tests run without a change, and have to pass


@dataclass(frozen=True)
class Wanted:
    """A mutant by its first name, and where it is in this tree."""

    mutant: Mutant
    site: Site
    noticed_by: str = ""  # the name of the test that did, in the earlier run


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="try mutants, and write what came of each")
    run.add_argument("--output", type=Path, required=True)
    run.add_argument("--mutants", type=Path, help="the output of an earlier run, whose mutants are tried again")
    run.add_argument(
        "--area", action="append", choices=sample.areas(), help="only this room (may be given several times)"
    )
    run.add_argument("--only", default="", help="mutants whose file or function has this in its name")
    run.set_defaults(command=_run)
    compare = commands.add_parser("compare", help="compare two runs: fails where a mutant newly survives")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.set_defaults(command=lambda given: compared(given.before, given.after))
    given = parser.parse_args()
    return given.command(given)


def _run(given: argparse.Namespace) -> int:
    os.nice(max(0, 15 - os.nice(0)))
    os.environ.update(trial.ENVIRONMENT)
    os.chdir(ROOT)
    scratch = Path(tempfile.mkdtemp(prefix="mutation-"))
    try:
        content = _content(given, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(score_words(content["mutants"]))
    failed = [control for control in content["controls"] if control["outcome"] != "survived"]
    for control in failed:
        print(f"without any change, {control['killed_by']} failed: {control['why']}", file=sys.stderr)
    return 1 if failed else 0


def _content(given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Try what is wanted, and keep what came of it after each: a run that was interrupted goes on where it was."""
    content = _begun(given.output, selection.digest())
    wanted, missing = _wanted(given)
    done = {_identity(row) for row in content["mutants"]}
    wanted = [one for one in wanted if _identity(asdict(one.mutant)) not in done]
    content["mutants"] += [
        {**asdict(one), "outcome": "not found"} for one in missing if _identity(asdict(one)) not in done
    ]
    random.Random(sample.SEED).shuffle(wanted)  # what is done of it is a fair sample at any time
    tests = _selection(scratch)
    content |= {
        "tests": len(tests.tests),
        "tests_cpu_s": round(sum(tests.seconds)),
        "tests_left_out": list(tests.failed),
    }
    trial.prepare(tests)
    tried_areas = {control["area"] for control in content["controls"]}
    fresh = [one.site for one in wanted if one.mutant.area not in tried_areas]
    content["controls"] += _controls(fresh, tests, scratch)
    for number, one in enumerate(wanted, 1):
        outcome = trial.tried(one.site, tests, scratch / "trial", one.noticed_by)
        content["mutants"].append(_row(one, outcome))
        content["cpu_s"] = round(content["cpu_s"] + outcome.cpu_s, 2)
        _write(content, given.output)
        _tell(f"{number}/{len(wanted)} {outcome.outcome:8} {outcome.cpu_s:5.1f} s  {content['mutants'][-1]['at']}")
    content["mutants"].sort(key=lambda row: [str(value) for value in _identity(row)])
    _write(content, given.output)
    return content


def _begun(output: Path, tree: str) -> dict[str, Any]:
    """What an earlier run on this very tree has written, or nothing yet."""
    if output.is_file():
        content = json.loads(output.read_text())
        if content["tree"] == tree:
            return content
    return {"commit": _commit(), "tree": tree, "seed": sample.SEED, "cpu_s": 0.0, "controls": [], "mutants": []}


def _write(content: dict[str, Any], output: Path) -> None:
    part = output.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    part.replace(output)


def _identity(row: dict[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in IDENTITY)


def _commit() -> str:
    return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def _wanted(given: argparse.Namespace) -> tuple[list[Wanted], list[Mutant]]:
    """The mutants to try, and those that this tree does not have."""
    if not given.mutants:
        drawn = [Wanted(site.mutant, site) for site in sample.drawn(given.area or sample.areas())]
        return [one for one in drawn if given.only in _name(one.mutant)], []
    names = [field.name for field in fields(Mutant)]
    rows = json.loads(given.mutants.read_text())["mutants"]
    mutants = [Mutant(**{name: row[name] for name in names}) for row in rows]
    noticed = {_identity(row): selection.name_of(row.get("killed_by", "")) for row in rows}
    wanted, missing, taken = [], [], set()
    for mutant in mutants:
        if given.only not in _name(mutant) or (given.area and mutant.area not in given.area):
            continue
        site = sample.found(mutant)
        if site is None or site.mutant in taken:
            missing.append(mutant)
        else:
            taken.add(site.mutant)
            wanted.append(Wanted(mutant, site, noticed[_identity(asdict(mutant))]))
    return wanted, missing


def _name(mutant: Mutant) -> str:
    return f"{mutant.module}:{mutant.function}"


def _row(wanted: Wanted, outcome: trial.Outcome) -> dict[str, object]:
    """A mutant by its first name, so that two runs can be compared by it."""
    where = f"{wanted.site.mutant.module}:{wanted.site.lines.start}"
    return {**asdict(wanted.mutant), "outcome": outcome.outcome, "at": where, **_details(outcome)}


def _details(outcome: trial.Outcome) -> dict[str, object]:
    return {key: value for key, value in asdict(outcome).items() if key != "outcome" and value not in ("", 0)}


def _selection(scratch: Path) -> selection.Selection:
    """What the tests run: recorded once for a tree, in a fork, so that nothing of the package is imported here."""
    file = ROOT / ".cache" / "mutation" / f"{selection.digest()}.json"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        _tell("recording what the pure tests run: some minutes")
        pid = os.fork()
        if pid == 0:
            try:
                selection.record(file, scratch / "recording")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    return selection.load(file)


def _tell(words: str) -> None:
    print(words, flush=True)


def _controls(found: Iterable[Site], tests: selection.Selection, scratch: Path) -> list[dict[str, object]]:
    """Those of an area with the most tests: if one fails though nothing was changed, no kill means anything."""
    by_area: dict[str, list[Site]] = {}
    for site in found:
        by_area.setdefault(site.mutant.area, []).append(site)
    rows = []
    for area, own in by_area.items():
        own.sort(key=lambda site: -len(trial.tests_for(site, tests, "")[0]))
        modules: Counter[str] = Counter()
        for site in own:
            if len(modules) < CONTROLS and not modules[site.mutant.module]:
                modules[site.mutant.module] += 1
                outcome = trial.tried(site, tests, scratch / "trial", change=False)
                rows.append(
                    {"area": area, "module": site.mutant.module, "outcome": outcome.outcome, **_details(outcome)}
                )
                _tell(f"control {site.mutant.module}: {outcome.outcome}, {outcome.cpu_s:.1f} s, {outcome.tests} tests")
    return rows


if __name__ == "__main__":
    sys.exit(main())
