"""Where CPU time can be bounded under version 2, and what is said where it cannot; on trees like the kernel's."""

import pytest

from castmates.linux import cpu_quota
from tests.unit import sysfs


def tree(top):
    """A machine's groups: a slice that has nobody in it, and a scope in it with a shell."""
    for group in ("", "user.slice/", "user.slice/session.scope/"):
        sysfs.write(top / f"{group}cgroup.controllers", "cpu memory pids")
        sysfs.write(top / f"{group}cgroup.subtree_control", "cpu pids")
        sysfs.write(top / f"{group}cgroup.procs", "")
        if group:
            sysfs.write(top / f"{group}cgroup.type", "domain")
    sysfs.write(top / "cgroup.procs", "1\n2")  # the topmost one may have processes
    sysfs.write(top / "user.slice/session.scope/cgroup.procs", "77")
    sysfs.write(top / "user.slice/session.scope/cgroup.subtree_control", "")
    return top


def test_the_group_above_a_login_is_taken_and_the_controller_handed_down_from_the_top(tmp_path):
    top = tree(tmp_path)
    above, login = top / "user.slice", top / "user.slice/session.scope"
    assert [cpu_quota.obstacle(group) for group in (top, above)] == ["", ""]
    assert "because processes are in it; let root run the sweep" in cpu_quota.obstacle(login)
    assert cpu_quota.still_to_hand_down(above) == []
    sysfs.write(top / "cgroup.subtree_control", "pids")
    sysfs.write(above / "cgroup.subtree_control", "pids")
    names = [top / "cgroup.subtree_control", above / "cgroup.subtree_control"]
    assert cpu_quota.still_to_hand_down(above) == names


def test_a_kernel_without_the_controller_is_named(tmp_path):
    top = tree(tmp_path)
    sysfs.write(top / "cgroup.controllers", "hugetlb")  # the others are version 1's
    assert cpu_quota.obstacle(top / "user.slice") == f"the controller 'cpu' is not in {top}/cgroup.controllers"
    assert cpu_quota.obstacle(tmp_path / "none").startswith("the controller 'cpu' is not in")


@pytest.mark.parametrize(
    ("closed", "said"),
    [
        ("user.slice", "this user may make no group in"),
        ("cgroup.subtree_control", "which this user may not write; let root run the sweep"),
    ],
)
def test_what_a_user_may_not_do_is_named(tmp_path, monkeypatch, closed, said):
    top = tree(tmp_path)
    sysfs.write(top / "cgroup.subtree_control", "pids")
    monkeypatch.setattr(cpu_quota.os, "access", lambda path, _: path != top / closed)
    assert said in cpu_quota.obstacle(top / "user.slice")
