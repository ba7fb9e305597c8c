"""How much memory we may use, on made-up trees."""

import pytest

from castmates.machine.probes import usable_memory

GROUP = {
    "proc/self/cgroup": "0::/job/step\n",
    "sys/fs/cgroup/job/memory.max": "4096000\n",
    "sys/fs/cgroup/job/step/memory.max": "max\n",
}
OLD_GROUP = {
    "proc/self/cgroup": "4:memory:/docker/1\n0::/\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "2048000\n",  # a container sees its own group as the topmost
}


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({}, 8192000),
        (GROUP, 4096000),
        (OLD_GROUP, 2048000),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9999999999\n"}, 8192000),
        ({"proc/meminfo": ""}, None),
    ],
)
def test_the_smallest_limit_counts(tmp_path, files, usable):
    for name, text in ({"proc/meminfo": "MemTotal:    8000 kB\nMemFree:  1 kB\n"} | files).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_memory(tmp_path) == usable
