"""NAS Parallel Benchmarks: programs that carry their input and judge their own result."""

import re
from pathlib import Path

from castmates.workloads.suites.job import PrivateCopy, Step, SuiteError, digest_of, last_words

PROGRAM = re.compile(r"(bt|cg|dc|ep|ft|is|lu|mg|sp|ua)\.([SWABCDEF])(?:\.x)?")
VERDICT = re.compile(r"^\s*Verification\s*=\s*(\S.*?)\s*$", re.MULTILINE)


class Program:
    """A program such as bin/cg.A.x."""

    def __init__(self, root: Path, file: Path) -> None:
        self.program = root / file

    def digest(self) -> str:
        """Digest the programs and commands."""
        if not self.program.is_file():
            raise SuiteError(f"{self.program} is not there; build it (make suite, or make CG CLASS=A)")
        return digest_of([self.program])

    def prepare(self, place: Path) -> None:
        """Fill an empty folder with what a run needs."""
        self._place, self._output = place / "run", place / "output"
        self._place.mkdir()
        self._copy = PrivateCopy(self._place, lambda _: None)

    def renew(self) -> None:
        """Make the folder what it was before the first run."""
        self._copy.renew()

    def steps(self) -> list[Step]:
        """The commands of one run, in order."""
        return [Step(self.program.name, [str(self.program.resolve())], self._place, self._output)]

    def wrong(self) -> str:
        """Read the verdict in the output: SUCCESSFUL, and nothing else, will do."""
        said = self._output.read_text(encoding="utf-8", errors="replace")
        verdicts = VERDICT.findall(said)
        if not verdicts:
            return f"{self.program.name} printed no line `Verification = …`{last_words(self._output)}"
        return "" if all(one == "SUCCESSFUL" for one in verdicts) else f"it printed `Verification = {verdicts[-1]}`"
