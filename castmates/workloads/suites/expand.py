"""Turns the keys `spec2017`, `parsec`, `npb` and `suites` of a catalogue file into ordinary workloads."""

from collections.abc import Iterator

from castmates.errors import CastmatesError
from castmates.study.model import Catalogue, Workload
from castmates.study.variant_keys import Npb, Parsec, Spec2017, SuiteKeys
from castmates.workloads.suites import added, find
from castmates.workloads.suites.find import Installed
from castmates.workloads.suites.job import SuiteError

READY_WITHIN = 600.0  # seconds: a run directory is copied before


def expanded(catalogue: Catalogue, file: str) -> Catalogue:
    """The catalogue of a file with the benchmarks of the suites that it names."""
    workloads = dict(catalogue.workloads)
    for name, workload in added.added_workloads(catalogue.suites, file):
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
        return find.spec2017_benchmarks(keys)
    return find.parsec_packages(keys) if isinstance(keys, Parsec) else find.npb_programs(keys)


def _workload(suite: str, keys: SuiteKeys, benchmark: Installed) -> Workload:
    where = ["--root", str(benchmark.root), "--at", str(benchmark.at)]
    command = ["{python}", "-P", "-m", "castmates.workloads.suites.run", suite, *where, *benchmark.more]
    check = "every" if isinstance(keys, Npb) else keys.check
    return Workload(
        title=benchmark.title,
        command=[*command, "--check", check, "--digest", benchmark.job.digest()],
        progress="heartbeat",
        unit="run",
        cores=keys.cores,
        memory=keys.memory,
        ready_within=READY_WITHIN,
        tags=[suite],
    )
