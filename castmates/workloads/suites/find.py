"""What lies in an installation: which benchmarks of it can be run, and what is missing where one cannot."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.study.reading import did_you_mean
from castmates.study.variant_keys import Npb, Parsec, Spec2017
from castmates.workloads.suites import npb, parsec, spec2017
from castmates.workloads.suites.job import Job, SuiteError


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
