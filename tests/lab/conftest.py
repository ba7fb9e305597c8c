"""Tests that run inside the lab: a pytest in the guest runs them, this one reports how they went.

A test with the mark `machines(...)` runs on each of these machines (tests/lab/shapes.py). All that a session wants
from one machine runs in one boot of it, because boot and imports take 20 seconds. Their fixtures exist in the guest.
They run where CASTMATES_LAB is set: with `all` every test, else without some that take minutes and add least.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from castmates.rdt.resctrl.tree import KernelTree
from tests.lab import guest
from tests.lab.inside import INSIDE, PROGRAMS, Guests, Remote, write_report
from tests.lab.kit import build
from tests.lab.kit.common import NoLab
from tests.lab.kit.transcript import ROOT
from tests.lab.shapes import SHAPES

HERE = Path(__file__).parent
UNIT = HERE.parent / "unit"
GUESTS = pytest.StashKey[Guests]()


def pytest_generate_tests(metafunc):
    if marker := metafunc.definition.get_closest_marker("machines"):
        metafunc.parametrize("machine", marker.args, indirect=True)


def _turn(item):
    """First the unit tests, beside which guests are at work already, then the lab's, then what needs quiet."""
    return [UNIT in item.path.parents, item.path.parent == HERE, True].index(True)


# Machines at landings, of the tests that would run on more of them; all others run on each of theirs.
AT_LANDINGS = {
    "test_fake_beside_kernel": ("sparse", "linux-7.2", "two-sockets-sparse-7.2"),
    "test_crashes": ("linux-6.1",),
    "test_grant": ("linux-6.1", "few-groups"),
    "test_verify_counters": ("linux-6.1",),
    "test_verify_rdt": ("monitoring-only", "obeying"),
}


def _is_extra(item):
    """Whether a test runs only with CASTMATES_LAB=all: what others show at each landing, on another machine.

    What is asked of all kernels is asked of the oldest and the youngest. The one between them runs in the whole sweep,
    beside the fake, and on the machines with two sockets and with sparse masks.
    """
    file, params = item.path.stem, getattr(getattr(item, "callspec", None), "params", {})
    machine = str(params.get("machine", ""))
    if not machine:
        return file in ("test_reference", "test_hardware_day", "test_faulty_sweeps")
    if file in AT_LANDINGS:
        return machine not in AT_LANDINGS[file] or params.get("option", "") != ""
    asked = item.get_closest_marker("machines").args
    return machine == "two-sockets-6.1" or (machine == "linux-6.12" and "linux-6.1" in asked)


@pytest.hookimpl(trylast=True)  # after those that deselect
def pytest_collection_modifyitems(config, items):
    if INSIDE not in os.environ and os.environ.get("CASTMATES_LAB") != "all":
        extra = [item for item in items if item.path.parent == HERE and _is_extra(item)]
        config.hook.pytest_deselected(items=extra)
        items[:] = [item for item in items if item not in extra]
    if INSIDE not in os.environ:
        items.sort(key=_turn)
        guests = config.stash[GUESTS] = Guests(lambda: _lab(config))
        items[:] = [Remote.of(item, guests) if item.get_closest_marker("machines") else item for item in items]


def pytest_runtestloop(session):
    if "CASTMATES_LAB" in os.environ and INSIDE not in os.environ and not session.config.option.collectonly:
        session.config.stash[GUESTS].begin(session.items)


def pytest_runtest_logreport(report):
    if INSIDE in os.environ:
        write_report(report)


@pytest.fixture(autouse=True)
def machine(request):
    """The machine that the test runs on."""
    return SHAPES[request.param] if hasattr(request, "param") else None


@pytest.fixture
def state(monkeypatch, tmp_path):
    """In a guest: a journal of the test's own."""
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path))
    return tmp_path


@pytest.fixture
def resctrl(state):
    """In a guest: resctrl, mounted as it comes and unmounted afterwards."""
    guest.mount()
    yield KernelTree(ROOT)
    guest.unmount()


@pytest.fixture(scope="session")
def programs():
    """In a guest: Debian's pqos and PAPI, installed as its packages install them."""
    subprocess.run(["cp", "-a", f"{os.environ[PROGRAMS]}/.", "/"], check=True)
    subprocess.run(["ldconfig"], check=True)


@pytest.fixture
def compiled(tmp_path):
    """In a guest: the folder of our own programs, which cannot be started from /share."""
    return Path(shutil.copytree("/share/compiled", tmp_path / "environment" / "bin"))


@pytest.fixture
def crowd():
    """In a guest: makes processes that grow when they are asked to, and ends them."""
    made = []

    def make():
        made.append(guest.Crowd())
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture(scope="session")
def lab(request):
    """The lab, built if need be."""
    return _lab(request.config)


@pytest.fixture(scope="module")
def beside(request):
    """What a module's function `aside` came to, which ran beside the tests in guests."""
    return request.config.stash[GUESTS].result_of(request.module.__name__, request.session.items)


def _lab(config):
    if "CASTMATES_LAB" not in os.environ:
        pytest.skip("the lab is not asked for: `make lab-test` builds it and runs these tests")
    lab = _lab_or_reason(config)
    if not isinstance(lab, str):
        return lab
    if os.environ.get("CASTMATES_LAB") in ("required", "all"):
        pytest.fail(lab, pytrace=False)
    pytest.skip(lab)


@functools.cache
def _lab_or_reason(config):
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    try:
        return build.build(lambda word: terminal.write_line(f"\n[lab] {word}"))
    except NoLab as reason:
        return f"The lab cannot be had here: {reason}."
