"""Our reader of the topology against an lstopo that runs: this machine; and the table of machines against it."""

import pytest

from castmates.machine.topology import read_topology
from tests.unit import hwloc
from tests.unit.test_topology_hwloc import OTHERWISE

pytestmark = pytest.mark.needs("lstopo")
# Without the files that the table leaves out, lstopo 2.9 refuses the last one and does not say why.
MACHINES = {name: facts for name, facts in hwloc.recorded().items() if name != "128ia64-17n4s2c"}


def test_this_machine_looks_the_same_to_both():
    ours = hwloc.seen_by_us(read_topology())
    assert not ours.differs_from(hwloc.seen_by_hwloc(hwloc.run()))


@pytest.mark.parametrize("name", MACHINES)
def test_lstopo_sees_the_same_of_the_table_as_of_the_machine(name, tmp_path):
    shown = hwloc.seen_by_hwloc(hwloc.run(hwloc.build(name, MACHINES[name], tmp_path)))
    # It takes kinds from frequencies too, and looks into /proc/cpuinfo and /proc/meminfo where we see otherwise.
    assert shown.differs_from(hwloc.seen_then(MACHINES[name])) <= {"kinds", *OTHERWISE.get(name, {})}
