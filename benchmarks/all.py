"""Every benchmark, one after the other, as one page of Markdown; if one fails there is no page."""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.common import ROOT, run, say
from castmates.errors import CastmatesError
from castmates.files import replace_text

COMMANDS = (
    "heartbeat_cost",
    "job_heartbeat --minutes 4",
    "restart_gap",
    "kernel_peers --minutes 6",
    "dial --minutes 3",
    "coverage",
    "resolution --lead chase --budget-of config/studies/quick.yaml --minutes 6",
    "resolution --lead dlrm-train --sharing-every 0 --minutes 10",
    "share --minutes 3",
    "launch_cost --minutes 2",
    "launch_cost --lead dlrm-train --launches 3 --sweep 0",
    "perturbation --minutes 2.5",
    "schemata",
    "monitor_cost",
    "counter_ways",
    "phase_cost",
    "change_points",
    "scale",
    "pressure --minutes 8 --figure docs/images/pressure",
)
INTRO = """# What the instrument itself can do

This page is written by `make benchmarks`: one run of everything in `benchmarks/`, on the machine that each part names,
in about 50 minutes. It is a noisy virtual machine where a part says so. Absolute times are of that machine and of that
hour: read the ratios, whose two sides were taken in turns within one run, and make the page anew on your own machine.
Each aim is stated beside its figure, and one that is missed is said to be missed.
"""


def main() -> None:
    """Run them all, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="file for the page; standard output if left out")
    output = parser.parse_args().output
    page = "\n".join([INTRO, *(_section(command) for command in COMMANDS)])
    if output is None:
        print(page, end="")
    else:
        replace_text(output, page)


def _section(command: str) -> str:
    module, *words = command.split()
    say(f"python -m benchmarks.{command}")
    whole = [sys.executable, "-m", f"benchmarks.{module}", *words]
    process = subprocess.Popen(whole, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        printed, _ = process.communicate()
    except BaseException:
        process.terminate()  # never killed: it has processes of its own to end
        process.wait()
        raise
    if process.returncode != 0:
        raise CastmatesError(f"'python -m benchmarks.{command}' failed (see above); no page was written.")
    return printed


if __name__ == "__main__":
    run(main)
