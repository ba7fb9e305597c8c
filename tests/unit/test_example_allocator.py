"""The example's allocator: it gives out ways through an agent, which a thread is here, and proves what was applied."""

import json
import threading

import pytest

from castmates.errors import CastmatesError
from castmates.protocols import Held
from castmates.rdt.choose import CacheRequest, Driver, refuse_hopeless
from castmates.study.spec import Share
from tests.house import ROOT
from tests.unit.test_plugins import add  # noqa: F401 (a fixture)

MEMBERS = {"lead": Held(1, [0, 1]), "other": Held(2, [2])}
ALL = "0,1 fff\n2 fff\n"


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """The module, with an agent that answers as long as it may."""
    monkeypatch.syspath_prepend(str(ROOT / "examples/plugin"))
    monkeypatch.setenv("CACHE_AGENT", str(tmp_path))
    from castmates_example import agent

    (tmp_path / "cache.json").write_text(json.dumps({"domains": [0], "ways": 12, "groups": 3}))
    over, seen = threading.Event(), []

    def answer():
        while not over.wait(0.002):
            if (tmp_path / "wanted").is_file() and (text := (tmp_path / "wanted").read_text()) not in seen[-1:]:
                seen.append(text)
                (tmp_path / "applied.new").write_text(text)
                (tmp_path / "applied.new").replace(tmp_path / "applied")

    thread = threading.Thread(target=answer)
    thread.start()
    agent.stop, agent.seen = lambda: (over.set(), thread.join()), seen
    yield agent
    agent.stop()


def test_ways_are_given_and_taken_back(agent):
    assert isinstance(agent.AGENT, Driver)
    assert agent.AGENT.refusal() == ""
    assert agent.AGENT.shareable().full == 0xFFF
    allocator = agent.AGENT.allocator(lambda _: None)
    allocator.prepare(MEMBERS)
    assert allocator.apply([Share(member="lead", ways=0xFF0), Share(member="other", ways=0xF)]), "ways were lost"
    assert allocator.read_back() == {"lead": "L3:0=ff0", "other": "L3:0=f"}
    assert not allocator.apply([]), "nobody loses anything"
    with pytest.raises(CastmatesError, match="and nothing else"):
        allocator.apply([Share(member="lead", bandwidth=50)])
    allocator.restore()
    allocator.restore()
    assert agent.seen == [ALL, "0,1 ff0\n2 f\n", ALL, ""]


def test_an_agent_that_does_not_answer_fails_the_launch(agent, monkeypatch):
    allocator = agent.AGENT.allocator(lambda _: None)
    allocator.prepare(MEMBERS)
    agent.stop()
    monkeypatch.setattr(agent, "PATIENCE", 0.05)
    with pytest.raises(CastmatesError, match=r"has not applied what is wanted within 0\.05 s"):
        allocator.apply([Share(member="lead", ways=1)])


def test_without_an_agent_partitions_are_refused_with_the_reason(agent, add, monkeypatch, tmp_path):  # noqa: F811
    add("allocators", "agent", "DRIVER")
    monkeypatch.setattr("tests.unit.test_plugins.DRIVER", agent.AGENT)
    (tmp_path / "cache.json").unlink()
    assert agent.AGENT.shareable() is None
    with pytest.raises(CastmatesError, match=r"no partition can be applied: .* has no cache\.json: does the agent run"):
        refuse_hopeless(CacheRequest(shares=True, rate=0, driver="agent"))
    monkeypatch.delenv("CACHE_AGENT")
    assert agent.AGENT.refusal() == "the variable CACHE_AGENT does not name the agent's folder"
