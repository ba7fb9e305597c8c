"""A rehearsal shares out what another machine has, among the caches and threads of this one, and counts nothing."""

from pathlib import Path

import pytest
import yaml

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.pipeline.rehearse import write_rehearsal
from castmates.project import load, on_captured_machine
from castmates.protocols import Held
from castmates.rdt import rehearsal
from castmates.rdt.choose import CacheRequest, NoAllocator, captured_machine, choose
from castmates.study.spec import REST, Share
from tests.unit import machines

HERE = machines.topology("synthetic-xeon-2s")
FIRST, SECOND = (llc.cpus[0] for llc in HERE.llcs)
HELD = {"lead": Held(100, (FIRST,)), "other": Held(200, (SECOND,))}
SHARES = (Share(member="lead", ways=0x00F), Share(member="other", ways=0x7F0), Share(member=REST, ways=0x7F0))


class Threads:
    """The threads of two processes."""

    def __init__(self):
        self.of = {100: [100, 101], 200: [200]}

    def threads(self, held):
        return {each.pid: list(self.of[each.pid]) for each in held}


@pytest.fixture
def threads(monkeypatch):
    found = Threads()
    monkeypatch.setattr(rehearsal, "read_topology", lambda: HERE)
    monkeypatch.setattr(rehearsal, "caches_of_level", lambda _: ())
    monkeypatch.setattr(rehearsal, "KernelTasks", lambda: found)
    return found


def chosen(machine, **keys):
    said = []
    allocator, monitor = choose(CacheRequest(shares=True, driver=f"rehearse:{machine}", **keys), said.append)
    return allocator, monitor


@pytest.mark.parametrize("name", ["sapphire-rapids", "granite-rapids", "milan"])
def test_the_cache_is_that_of_the_other_machine_on_the_caches_of_this_one(name, threads):
    there, here = captured_machine(shipped.machine(name)).cache, rehearsal.driver(name).shareable()
    assert here.domains == tuple(llc.id for llc in HERE.llcs)
    assert here == there.model_copy(update={"domains": here.domains})


@pytest.mark.parametrize("name", ["sapphire-rapids", "genoa"])
def test_threads_are_in_their_groups_whenever_they_began_and_masks_are_read_back(name, threads):
    allocator, monitor = chosen(name)
    allocator.prepare(HELD)
    threads.of[100] = [100, 102]  # 101 has ended
    assert allocator.misplaced() == []
    threads.of[200].append(101)  # its number again
    assert allocator.misplaced() == []
    threads.of = {100: [100, 101, 102], 200: [200]}
    assert allocator.misplaced() == []
    monitor.attach(HELD)
    for _ in range(2):
        threads.of[100] = [101, 102]  # its first thread has ended, and the process goes on
        assert allocator.misplaced() == []
    allocator.apply(SHARES)
    assert allocator.misplaced() == []
    first, second = (llc.id for llc in HERE.llcs)
    masks = {who: line.split("L3:")[1].split()[0] for who, line in allocator.read_back().items()}
    assert f"{first}=f;" in masks["lead"]
    assert f"{second}=7f0" in masks["other"]
    groups = allocator.groups
    assert {tid: allocator.tasks.place(tid).control for tid in (100, 101, 102, 200)} == {
        100: groups["lead"], 101: groups["lead"], 102: groups["lead"], 200: groups["other"]
    }  # fmt: skip
    assert monitor.occupancies() == {"lead": None, "other": None}
    allocator.tree.processes.thread(102).closid = 0  # as if somebody had moved it
    assert "a thread outside of its group" in allocator.misplaced()[0]
    assert "masks and throttles change nothing" in allocator.about()["allocation"]
    allocator.restore()
    monitor.close()


def test_no_sample_has_a_value(threads):
    allocator, monitor = chosen("emerald-rapids")
    allocator.prepare(HELD)
    monitor.attach(HELD)
    monitor.start()
    samples = monitor.stop()
    assert {sample.metric for sample in samples} == {"llc_occupancy", "mbm_total", "mbm_local"}
    assert all(sample.value is None and "Unavailable" in sample.note for sample in samples)
    allocator.restore()
    monitor.close()


def test_a_launch_without_partitions_is_watched_by_the_same(threads):
    allocator, monitor = choose(CacheRequest(shares=False, driver="rehearse:milan"), print)
    assert isinstance(allocator, NoAllocator)
    monitor.attach(HELD)
    assert monitor.occupancies() == {"lead": None, "other": None}
    monitor.close()


def write(folder, **keys):
    file = folder / "study.yaml"
    study = {"name": "study", "leads": ["chase"], "antagonists": ["stream"], "controls": None}
    file.write_text(yaml.safe_dump(study | keys))
    return file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty project."""
    (tmp_path / "envs").symlink_to(Path(__file__).parents[3] / "envs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_study_of_a_rehearsal_is_the_same_but_for_name_and_driver(folder, monkeypatch):
    own = folder / "workloads/own.yaml"
    own.parent.mkdir()
    own.write_text("workloads: {mine: {command: mine}}\n")
    first = load(write(folder, leads=["mine"], seed=41))
    file = write_rehearsal(first.study_file, "genoa")
    project = load(file)
    assert str(file) == "results/study-rehearsed-genoa/rehearsal/study.yaml"
    assert project.rehearsed == "genoa"
    changes = {"name": first.study.name, "title": first.study.title, "cache": first.study.cache}
    assert project.study.model_copy(update=changes) == first.study
    assert project.workloads["mine"] == first.workloads["mine"]
    with monkeypatch.context() as patched:  # the folder is that of the catalogue that ships, as in a clone's config
        patched.setattr(shipped, "catalogue", lambda: own.parent)
        write_rehearsal(first.study_file, "genoa")
    assert not list(file.parent.rglob("own.yaml"))


def test_what_cannot_be_rehearsed_is_one_sentence(folder):
    nothing = "is neither a file nor a machine that ships"
    genoa = {"cache": {"driver": "rehearse:genoa"}}
    for keys, words in (
        ({"cache": {"driver": "rehearse:milano"}}, nothing),
        ({**genoa, "platform": "modelled"}, "is of a modelled machine, and a rehearsal runs on the machine at hand"),
    ):
        with pytest.raises(CastmatesError, match=words):
            load(write(folder, **keys))
    file = write(folder, **genoa)
    with pytest.raises(CastmatesError, match="rehearses 'genoa' on the machine at hand, so --machine"):
        on_captured_machine(load(file), "milan")
    with pytest.raises(CastmatesError, match="rehearses 'genoa'; sweep it without --rehearse"):
        write_rehearsal(file, "milan")
    with pytest.raises(CastmatesError, match=nothing):
        write_rehearsal(write(folder), "milano")
    assert not (folder / "results").exists()
