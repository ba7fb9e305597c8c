"""A machine's resctrl is used where it can be, and where it cannot the reason is one sentence."""

import os

import pytest

from castmates.errors import CastmatesError
from castmates.linux.kernel_files import Mount
from castmates.rdt import choose
from castmates.rdt.choose import CacheRequest, choose_allocator, choose_monitor, refuse_hopeless
from castmates.rdt.pqos import session
from castmates.rdt.resctrl import mounting
from castmates.study.spec import Share
from tests.unit.rdt import trees


@pytest.fixture
def find(monkeypatch):
    """Let this be the mount that is found."""

    def let(mount):
        for module in (choose, mounting):
            monkeypatch.setattr(module, "find_mount", lambda *_: mount)

    return let


@pytest.fixture
def mounted(find, tmp_path):
    """Let a written tree be what is mounted."""

    def mount(files, options="rw"):
        here = trees.record(tmp_path, files)
        find(Mount("/", str(here), "resctrl", options))
        return here

    return mount


def test_what_is_mounted_is_used_and_let_go(mounted):
    here = mounted(trees.XEON, "rw,cdp,nosuid")
    allocator, monitor = choose_allocator(), choose_monitor(rate=5)
    assert (allocator.name, monitor.name) == ("resctrl", "resctrl")
    assert allocator.about()["mounted with"] == "cdp"
    assert mounting._leases[here].users == 2
    monitor.close()
    monitor.close()
    allocator.restore()
    assert here not in mounting._leases


def test_a_study_without_shares_leaves_the_machine_alone(mounted):
    here = mounted(trees.XEON)
    assert choose_allocator(shares=False).name == "none"
    assert here not in mounting._leases


def test_shares_are_refused_at_once_where_resctrl_is_gone(mounted, find, monkeypatch):
    mounted(trees.XEON)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refuse_hopeless(CacheRequest(shares=True))
    find(None)
    refuse_hopeless(CacheRequest())
    with pytest.raises(CastmatesError, match=r"^no partition can be applied: .*(is not mounted|has no resctrl)"):
        refuse_hopeless(CacheRequest(shares=True))


def test_shares_are_refused_at_once_where_root_has_granted_no_group(mounted, monkeypatch):
    mounted(trees.XEON)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CastmatesError, match=r"^no partition can be applied: .*sudo castmates doctor --grant"):
        refuse_hopeless(CacheRequest(shares=True))


def test_shares_by_pqos_are_refused_at_once_where_it_cannot_be_used(monkeypatch):
    refuse_hopeless(CacheRequest(driver="pqos"))
    monkeypatch.setattr(session, "find_mount", lambda _: None)
    monkeypatch.setattr(session, "pqos_user", lambda: "")
    monkeypatch.setattr(session, "choose_interface", lambda: "msr")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CastmatesError, match=r"no program 'pqos'"):
        refuse_hopeless(CacheRequest(shares=True, driver="pqos"))


def test_a_processor_that_only_monitors(mounted):
    here = mounted(trees.MONITORING_ONLY)
    allocator = choose_allocator()
    assert "only monitors" in allocator.about()["allocation"]
    with pytest.raises(CastmatesError, match=r"no partition can be applied .*only monitors"):
        allocator.apply([Share(member="lead@0", ways=1)])
    assert not allocator.apply([])
    assert here not in mounting._leases


def test_a_processor_that_counts_nothing(mounted):
    here = mounted(trees.CDP, "rw,cdp")
    assert "counts nothing" in choose_monitor().about()["monitoring"]
    assert here not in mounting._leases


def test_a_user_who_may_not_write(mounted, monkeypatch):
    here = mounted(trees.XEON)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "sudo castmates doctor --grant" in choose_allocator().about()["allocation"]
    given = here / "castmates-1000-0"
    given.mkdir()
    (given / "tasks").write_text("")
    allocator = choose_allocator()
    assert allocator.name == "resctrl"
    allocator.restore()
    assert here not in mounting._leases


@pytest.mark.needs("no-resctrl")
def test_a_machine_without_resctrl(monkeypatch):
    monkeypatch.setattr(choose, "read_topology", lambda _: pytest.fail("nothing is to be read"))
    for chosen in (choose_allocator(), choose_monitor()):
        assert chosen.name == "none"
        assert "this machine has no resctrl" in " ".join(chosen.about().values())


def test_what_vanishes_while_it_is_read_is_a_sentence(mounted):
    here = mounted({name: text for name, text in trees.XEON.items() if name != "schemata"})
    for chosen in (choose_allocator(), choose_monitor()):
        assert "cannot be read" in " ".join(chosen.about().values())
    assert here not in mounting._leases
