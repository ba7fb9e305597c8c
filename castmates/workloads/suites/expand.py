"""Turns the keys `spec2017`, `parsec`, `npb` and `suites` of a catalogue file into ordinary workloads."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from castmates import plugins
from castmates.errors import CastmatesError
from castmates.study.model import Catalogue, Workload
from castmates.study.progress_keys import UNITS
from castmates.study.reading import did_you_mean, read_keys
from castmates.study.workload_keys import Npb, Parsec, Spec2017, SuiteKeys
from castmates.workloads.suites import npb, parsec, spec2017
from castmates.workloads.suites.job import Job, SuiteError

# What lies in an installation: which benchmarks of it can be run, and what is missing where one cannot.


@dataclass(frozen=True)
class Installed:
    """A benchmark that can be run: its short name, its whole one, and the arguments of `workloads.suites.run`."""

    name: str
    title: str
    root: Path
    at: Path  # from the root
    job: Job
    more: tuple[str, ...] = ()


def spec2017_benchmarks(keys: Spec2017) -> list[Installed]:
    """Every benchmark with a run directory of the size, tuning and label."""
    root = _root(keys.root)
    home = root / spec2017.BENCHMARKS
    if not home.is_dir():
        raise SuiteError(f"'root' is {root}, but there is no {spec2017.BENCHMARKS} in it")
    installed = {folder.name: folder for folder in sorted(home.glob("[0-9][0-9][0-9].*")) if folder.is_dir()}
    chosen = _chosen(keys.benchmarks, installed, lambda name: {name, name[:3], name[4:], name[4:].rpartition("_")[0]})
    benchmarks = []
    for name in chosen or installed:
        folder = _run_directory(installed[name], keys, must=bool(chosen))
        if folder is not None:
            at = folder.relative_to(root)
            short = name.partition(".")[2].lower()
            title = f"SPEC CPU2017 {name}, {keys.size}"
            benchmarks.append(Installed(short, title, root, at, spec2017.Benchmark(root, at)))
    if not benchmarks:
        wanted = _pattern(keys).replace("(.+)", "LABEL")
        raise SuiteError(f"{home}: no benchmark has a directory run/{wanted} with {spec2017.COMMANDS}; {_SET_UP}")
    return benchmarks


_SET_UP = "make them with runcpu --action=setup --size=… --copies=1"


def _pattern(keys: Spec2017) -> str:
    return f"run_{keys.tune}_{keys.size}_{keys.label or '(.+)'}.0000"


def _run_directory(benchmark: Path, keys: Spec2017, must: bool) -> Path | None:
    """The directory with the commands: the lowest number of the only label."""
    label = re.escape(keys.label) if keys.label else r".+"
    form = re.compile(rf"run_{keys.tune}_{keys.size}_({label})\.(\d{{4}})")
    folders: dict[str, Path] = {}
    for folder in sorted((benchmark / "run").glob("run_*")):
        match = form.fullmatch(folder.name)
        if match and (folder / spec2017.COMMANDS).is_file():
            folders.setdefault(match[1], folder)
    if len(folders) > 1:
        raise SuiteError(
            f"{benchmark / 'run'} has directories of several labels ({', '.join(folders)}); choose one with 'label'"
        )
    if must and not folders:
        wanted = _pattern(keys).replace("(.+)", "LABEL")
        raise SuiteError(f"{benchmark / 'run'} has no directory {wanted} with {spec2017.COMMANDS}; {_SET_UP}")
    return next(iter(folders.values()), None)


def parsec_packages(keys: Parsec) -> list[Installed]:
    """Every package with an installed build and a run configuration of the size."""
    root = _root(keys.root)
    if not (root / "pkgs").is_dir():
        raise SuiteError(f"'root' is {root}, but there is no pkgs in it")
    configurations = [*root.glob("pkgs/*/*/parsec"), *root.glob("ext/splash2x/*/*/parsec")]
    installed = {_package_name(root, folder.parent): folder.parent for folder in sorted(configurations)}
    chosen = _chosen(keys.benchmarks, installed, lambda name: {name})
    packages = []
    for name in chosen or installed:
        folder = installed[name]
        sized = (folder / "parsec" / f"{keys.size}.runconf").is_file()
        builds = sorted(place.name for place in (folder / "inst").glob("*") if place.is_dir())
        build = keys.build or (builds[0] if len(builds) == 1 else "")
        if not sized or build not in builds:
            if not chosen and (not sized or not builds or keys.build):
                continue
            raise SuiteError(_lacking(folder, keys, sized, builds))
        at = folder.relative_to(root)
        job = parsec.Package(root, at, build, keys.size, keys.cores)
        title, more = f"PARSEC {name}, {keys.size}", ("--build", build, "--size", keys.size)
        packages.append(Installed(name, title, root, at, job, more))
    if not packages:
        raise SuiteError(f"{root}: no package is built with {keys.size}.runconf; run bin/parsecmgmt -a build")
    return packages


def _package_name(root: Path, folder: Path) -> str:
    return folder.name if folder.is_relative_to(root / "pkgs") else f"splash2x.{folder.name}"


def _lacking(folder: Path, keys: Parsec, sized: bool, builds: Sequence[str]) -> str:
    if not sized:
        return f"{folder / 'parsec'} has no {keys.size}.runconf, the run configuration of that size"
    if not builds:
        return f"{folder} is not built: it has no inst/BUILD; run bin/parsecmgmt -a build -p {folder.name}"
    wish = f"there is no '{keys.build}'" if keys.build else "choose one with 'build'"
    return f"{folder / 'inst'} has the builds {', '.join(builds)}; {wish}"


def npb_programs(keys: Npb) -> list[Installed]:
    """Every program of the class in bin."""
    root = _root(keys.root)
    files = {}
    for file in sorted((root / "bin").glob("*")):
        match = npb.PROGRAM.fullmatch(file.name)
        if match and match[2] == keys.size:
            files[match[1]] = file.relative_to(root)
    if not files:
        raise SuiteError(f"{root / 'bin'} has no program of class {keys.size}, such as cg.{keys.size}.x; build them")
    chosen = _chosen(keys.benchmarks, files, lambda name: {name})
    return [
        Installed(name, f"NPB {name.upper()}, class {keys.size}", root, files[name], npb.Program(root, files[name]))
        for name in chosen or files
    ]


def _root(written: str) -> Path:
    root = Path(written).absolute()
    if not root.is_dir():
        raise SuiteError(f"'root' is '{written}', but there is no such folder")
    return root


def _chosen(wanted: Sequence[str], there: Iterable[str], names_of: Callable[[str], set[str]]) -> list[str]:
    """The benchmarks that are meant; each may be written in several ways."""
    known = list(there)
    chosen = []
    for word in wanted:
        matches = [name for name in known if word in names_of(name)]
        if len(matches) != 1:
            which = f"may be {' or '.join(matches)}" if matches else f"is not there{did_you_mean(word, known)}"
            raise SuiteError(f"the benchmark '{word}' {which} (there are: {', '.join(known) or 'none'})")
        chosen += matches
    return chosen


READY_WITHIN = 600.0  # seconds: a run directory is copied before


def expanded(catalogue: Catalogue, file: str) -> Catalogue:
    """The catalogue of a file with the benchmarks of the suites that it names."""
    workloads = dict(catalogue.workloads)
    for name, workload in added_workloads(catalogue.suites, file):
        if name in workloads:
            raise CastmatesError(f"{file}: the workload '{name}' stands in this file too; rename it.")
        workloads[name] = workload
    for suite, keys in _suites(catalogue):
        try:
            for benchmark in _benchmarks(keys):
                name = f"{suite}.{benchmark.name}"
                if name in workloads:
                    raise SuiteError(f"the workload '{name}' stands in this file too; rename it")
                workloads[name] = _workload(suite, keys, benchmark)
        except SuiteError as problem:
            raise CastmatesError(f"{file}: '{suite}': {problem}.") from None
    return catalogue.model_copy(update={"workloads": workloads})


def _suites(catalogue: Catalogue) -> Iterator[tuple[str, SuiteKeys]]:
    for suite, keys in (("spec2017", catalogue.spec2017), ("parsec", catalogue.parsec), ("npb", catalogue.npb)):
        if keys is not None:
            yield suite, keys


def _benchmarks(keys: SuiteKeys) -> list[Installed]:
    if isinstance(keys, Spec2017):
        return spec2017_benchmarks(keys)
    return parsec_packages(keys) if isinstance(keys, Parsec) else npb_programs(keys)


def _workload(suite: str, keys: SuiteKeys, benchmark: Installed) -> Workload:
    where = ["--root", str(benchmark.root), "--at", str(benchmark.at)]
    command = ["{python}", "-P", "-m", "castmates.workloads.suites.run", suite, *where, *benchmark.more]
    check = "every" if isinstance(keys, Npb) else keys.check
    inside = keys.progress != "runs"  # what a step is lies inside a run, and a keeper starts each one
    return Workload(
        title=benchmark.title,
        command=[*command, "--check", check, "--digest", benchmark.job.digest(), *(["--units", "1"] if inside else [])],
        progress=keys.progress if inside else "heartbeat",
        unit=UNITS[keys.progress],
        cores=keys.cores,
        memory=keys.memory,
        ready_within=READY_WITHIN,
        tags=[suite],
    )


# Suites that plug-ins know: what stands below `suites` in a catalogue file becomes ordinary workloads.
#
# A plug-in is a function. It gets the keys that the user wrote for it, and returns its benchmarks by their short names,
# each as it would be written in a catalogue; a ValueError is its way to report what is wrong with the keys.

OURS = ("spec2017", "parsec", "npb")


def added_workloads(wanted: Mapping[str, Mapping[str, Any]], file: str) -> Iterator[tuple[str, Workload]]:
    """The benchmarks of each suite that is named, as SUITE.BENCHMARK."""
    if not wanted:
        return
    known = plugins.added("suites", _wrong, taken=OURS)
    for suite, keys in wanted.items():
        if suite not in known:
            meant, there = did_you_mean(suite, known), ", ".join(known) or "none"
            raise CastmatesError(
                f"{file}: no plug-in that is installed here adds the suite '{suite}'{meant} (there are: {there})."
            )
        try:
            found = known[suite](dict(keys))
        except ValueError as problem:
            raise CastmatesError(f"{file}: 'suites.{suite}': {problem}.") from None
        except Exception as problem:  # whatever a plug-in's code raises
            raise plugins.of("suites", suite).broken(f"failed: {type(problem).__name__}: {problem}") from problem
        yield from _checked(suite, found).items()


def _checked(suite: str, found: Any) -> dict[str, Workload]:  # noqa: ANN401 (what a plug-in returns)
    """What it returned, checked as if it stood in a file."""
    plugin = plugins.of("suites", suite)
    try:
        text = yaml.safe_dump({"workloads": {f"{suite}.{name}": dict(keys) for name, keys in found.items()}})
        return dict(read_keys(Catalogue, text, f"what {plugin} returned").workloads)
    except (AttributeError, TypeError, ValueError, yaml.YAMLError) as problem:
        raise plugin.broken(f"returned no workloads by name: {problem}") from problem


def _wrong(thing: object) -> str:
    return "" if callable(thing) else f"it is a {type(thing).__name__}, and no function of the keys"
