"""Runs the examples of pages such as docs/tutorial.md, and writes their output into the page.

`python -m docs_site.examples` renews all pages, or those given; `--check` fails if one would change.
A page marks its examples by comments:

    <!-- file: NAME -->       the next fenced block is written to this file
    <!-- run: COMMAND -->     a shell runs it; the next fenced block is its output
    <!-- do: COMMAND -->      a shell runs it, and nothing is shown
    <!-- value: COMMAND -->…<!-- end -->    its output is put between the two
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("docs/tutorial.md", "docs/case-study.md")
COPIED, LINKED = ("Snakefile", "workflow", "profiles", "config", "scripts", "envs"), ("castmates", "docs_site")
STEP = re.compile(
    r"<!-- (?P<what>file|run|do|value): (?P<words>.*?) -->"
    r"(?:(?P<between>\s*\n)(?P<fence>```\w*\n)(?P<block>.*?)(?P<close>^```$)"
    r"|(?P<value>[^`\n]*?)(?P<end><!-- end -->))?",
    re.MULTILINE | re.DOTALL,
)


def filled(text: str, folder: Path) -> str:
    """The page's text with everything in it run anew, in this folder."""
    return STEP.sub(lambda step: _step(step, folder), text)


def _step(step: re.Match[str], folder: Path) -> str:
    what, words = step["what"], step["words"]
    if what == "file":
        (folder / words).write_text(step["block"], encoding="utf-8")
        return step[0]
    printed = _run(words, folder)
    if what == "do":
        return step[0]
    head = f"<!-- {what}: {words} -->"
    if what == "value":
        return f"{head}{printed.strip()}{step['end']}"
    return f"{head}{step['between']}{step['fence']}{printed.rstrip()}\n{step['close']}"


def _run(words: str, folder: Path) -> str:
    """What a shell prints that runs these words; it fails where they do."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = os.environ | {
        "PATH": path,
        "COLUMNS": "110",
        "CASTMATES_CACHE": str(folder / ".cache"),
        "PYTHONPATH": ".",
    }
    command = ["bash", "-o", "pipefail", "-c", words]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def project(folder: Path) -> Path:
    """A clone's folder, without what was measured in it."""
    folder.mkdir()
    for part in COPIED:
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, folder / part)
    for part in LINKED:
        (folder / part).symlink_to(ROOT / part)
    return folder


def renewed(pages: tuple[str, ...] = PAGES) -> Iterator[tuple[Path, str]]:
    """Each page's file and its text, run anew in one project: later pages may look at studies of earlier ones."""
    with tempfile.TemporaryDirectory() as place:
        folder = project(Path(place) / "castmates")
        for page in pages:
            yield ROOT / page, filled((ROOT / page).read_text(encoding="utf-8"), folder)


def main() -> None:
    """Renew the pages, or check that they are fresh."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a page would change")
    parser.add_argument("pages", nargs="*", default=PAGES)
    arguments = parser.parse_args()
    check = arguments.check
    stale = []
    for file, text in renewed(tuple(arguments.pages)):
        if file.read_text(encoding="utf-8") == text:
            continue
        stale.append(file.name)
        if not check:
            file.write_text(text, encoding="utf-8")
    if check and stale:
        raise SystemExit(
            f"{', '.join(stale)}: the examples print something else now; run `python -m docs_site.examples`."
        )


if __name__ == "__main__":
    main()
