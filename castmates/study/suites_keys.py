"""The keys with which a catalogue file names an installed benchmark suite; workloads/suites finds what is in it."""

from typing import Annotated, Literal

from pydantic import Field

from castmates.study.written import Amount, Written

Root = Annotated[str, Field(min_length=1, description="the folder of the installation")]
Benchmarks = Annotated[
    list[str], Field(default_factory=list, description="which of them; all that can be run if left out")
]
Cores = Annotated[int, Field(ge=1, description="how many CPUs, and threads, each of them is given")]
Memory = Annotated[Amount, Field(description="what each of them takes of the machine's memory, at most")]
Check = Annotated[
    Literal["first", "every", "never"],
    Field(description="which runs have their results compared with the suite's; comparing takes CPU time too"),
]
FITS = "a run must fit a window (budget.longest_window) to be measured well"


class Spec2017(Written):
    """SPEC CPU2017, installed, built, and its run directories set up."""

    root: Root
    size: Literal["test", "train", "refrate", "refspeed"] = Field(default="test", description=f"the input; {FITS}")
    tune: Literal["base", "peak"] = Field(default="base", description="which build")
    label: str | None = Field(default=None, description="label of the build, where there are several")
    benchmarks: Benchmarks
    check: Check = "first"
    cores: Cores = 1
    memory: Memory = "2 GB"


class Parsec(Written):
    """PARSEC 3, built with parsecmgmt, its inputs unpacked."""

    root: Root
    size: Literal["test", "simdev", "simsmall", "simmedium", "simlarge", "native"] = Field(
        default="test", description=f"the input; {FITS}"
    )
    build: str | None = Field(default=None, description="a folder of inst, such as amd64-linux.gcc")
    benchmarks: Benchmarks
    check: Check = "first"
    cores: Cores = 1
    memory: Memory = "2 GB"


class Npb(Written):
    """NAS Parallel Benchmarks, built."""

    root: Root
    size: Literal["S", "W", "A", "B", "C", "D", "E", "F"] = Field(default="S", description=f"the class; {FITS}")
    benchmarks: Benchmarks
    cores: Cores = 1
    memory: Memory = "2 GB"


SuiteKeys = Spec2017 | Parsec | Npb
