"""Our reader of the topology against an lstopo that runs: this machine, and invented ones."""

from pathlib import Path

import pytest

from castmates.machine.topology import read_topology
from tests.unit import hwloc, sysfs
from tests.unit.hwloc import INVENTED

pytestmark = pytest.mark.needs("lstopo")


def test_this_machine_looks_the_same_to_both():
    assert hwloc.seen_by_us(read_topology()) == hwloc.seen_by_hwloc(hwloc.run(Path("/")))


@pytest.mark.parametrize("name", INVENTED)
def test_invented_machines_do_too(name, tmp_path):
    tree = sysfs.build(tmp_path, INVENTED[name]())
    assert hwloc.seen_by_us(read_topology(tree)) == hwloc.seen_by_hwloc(hwloc.run(tree))
