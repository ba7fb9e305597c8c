"""Installations of suites in their own shape, with programs of ours, and a way to run one of their benchmarks."""

import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from castmates.workloads import heartbeat
from tests.waiting import PATIENCE

LABEL = "mine-m64"
SIZE = "test"

# Like SPEC's: quiet and 0 where both are the same, else the difference and 1.
SPECDIFF = 'shift 3; cmp "$1" "$2" && echo "specdiff run completed"'
DOUBLES = 'while read -r number; do echo $((2 * number)); done < "$1"'


@dataclass(frozen=True)
class Ended:
    status: int
    said: str
    state: heartbeat.State
    beats: list[int]


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def spec_root(place: Path) -> Path:
    program(place / "bin" / "specperl", 'exec sh "$@"')
    (place / "bin" / "harness").mkdir(parents=True)
    (place / "bin" / "harness" / "specdiff").write_text(SPECDIFF)
    return place


def spec_benchmark(
    root: Path,
    name: str = "505.mcf_r",
    body: str = DOUBLES,
    lines: str = "-o inp.out -e inp.err {exe} inp.in > inp.out 2>> inp.err\n",
    compare: bool = True,
    label: str = LABEL,
) -> Path:
    """A benchmark that doubles the numbers of inp.in, with its run directory set up."""
    home = root / "benchspec" / "CPU" / name
    run = home / "run" / f"run_base_{SIZE}_{label}.0000"
    exe = f"{name[4:]}_base.{label}"
    program(run / exe, body)
    (run / "inp.in").write_text("4\n21\n")
    for kind, file, content in (("input", "inp.in", "4\n21\n"), ("output", "inp.out", "8\n42\n")):
        folder = home / "data" / SIZE / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)
    head = f"-S 1\n-E SPEC {root}\n-E OMP_NUM_THREADS 77\n-E GREETING two words\n-r\n-N C\n-C {run}\n"
    (run / "speccmds.cmd").write_text(head + lines.format(exe=f"../{run.name}/{exe}"))
    if compare:
        differ = f"{root}/bin/specperl {root}/bin/harness/specdiff -m -l 10"
        line = f"-k -o inp.out.cmp {differ} {home}/data/{SIZE}/output/inp.out inp.out > inp.out.cmp\n"
        (run / "compare.cmd").write_text(head + line)
    return run


def parsec_package(root: Path, name: str = "blackscholes", body: str = "", runconf: str = "") -> Path:
    home = root / "pkgs" / "apps" / name
    default = 'echo "$# threads $1 of $NTHREADS" > "$3"; cat "$2" >> "$3"; rm "$2"; touch scrap'
    program(home / "inst" / "amd64-linux.gcc" / "bin" / name, body or default)
    (home / "parsec").mkdir(parents=True)
    wanted = f'# a run configuration\nrun_exec="bin/{name}"\nrun_args="${{NTHREADS}} in_4.txt \'out 1.txt\'"\n'
    (home / "parsec" / "simsmall.runconf").write_text(runconf or wanted)
    archive(home / "inputs" / "input_simsmall.tar", {"./in_4.txt": "four\n"})
    return home


def archive(file: Path, members: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(file, "w") as tar:
        for name, content in members.items():
            (Path(folder) / Path(name).name).write_text(content)
            tar.add(Path(folder) / Path(name).name, name)


def npb_program(root: Path, verdict: str = "SUCCESSFUL", file: str = "cg.S.x") -> Path:
    said = f" CG Benchmark Completed.\n Class           =                        S\n Verification    = {verdict:>24}"
    return program(root / "bin" / file, f'printf "%s\\n" "{said}"')


def start(*words: object, beats: Path, scratch: Path) -> "subprocess.Popen[str]":
    heartbeat.create(beats)
    scratch.mkdir(exist_ok=True)
    variables = {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(scratch),
        "OMP_NUM_THREADS": "1",
        heartbeat.VARIABLE: str(beats),
    }
    command = [sys.executable, "-m", "castmates.workloads.suites.run", *map(str, words)]
    root = Path(__file__).resolve().parents[3]
    return subprocess.Popen(
        command, cwd=root, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def run(*words: object, place: Path) -> Ended:
    """Run a benchmark to its end."""
    beats = place / "beats"
    process = start(*words, beats=beats, scratch=place / "scratch")
    said = process.communicate(timeout=PATIENCE)[0]
    reader = heartbeat.Reader(beats)
    return Ended(process.returncode, said, reader.state, [units for _, units in reader.beats(0).records])
