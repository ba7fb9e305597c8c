"""A group counts on each of its CPUs as a process without one; a folder stands for the kernel's."""

import pytest

from castmates.linux import cpu_quota
from castmates.runner.processes.quotas import even_out


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Two members in the group of their launch; each group begins with the weight of one process."""
    monkeypatch.setattr(cpu_quota, "write_kernel", lambda path, text: path.write_text(text))
    found = {name: tmp_path / "ours" / name for name in ("lead@0-7", "beside@0")}
    for group in found.values():
        group.mkdir(parents=True)
    return found


def after(groups, file, cpus):
    everyone = [*groups.values(), next(iter(groups.values())).parent]
    for group in everyone:
        (group / file).write_text("100")
    even_out(dict(zip(groups, cpus, strict=True)), groups.get)
    return [int((group / file).read_text()) for group in everyone]


@pytest.mark.parametrize(
    ("file", "cpus", "weights"),
    [
        ("cpu.weight", (8, 1), [800, 100, 900]),
        ("cpu.shares", (8, 1), [8192, 1024, 9216]),
        ("cpu.weight", (200, 2), [10_000, 100, 9_898]),  # as much as the kernel takes, in the same proportion
    ],
)
def test_each_group_has_the_weight_of_its_cpus(groups, file, cpus, weights):
    """A group on eight CPUs had an eighth of the share of a process on each of them."""
    assert after(groups, file, cpus) == weights


def test_where_the_controller_does_not_reach_nothing_is_written(groups):
    even_out(dict.fromkeys(groups, 8), groups.get)
    even_out({"lead@0": 8}, lambda _: None)
    assert not [file for group in groups.values() for file in group.iterdir()]
