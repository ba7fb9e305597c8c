"""What plug-ins add is checked where it is used, and what is wrong is a sentence that names the package."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from castmates import plugins
from castmates.analysis.effects import system
from castmates.counters.choose import added_collectors
from castmates.errors import CastmatesError
from castmates.project import load
from castmates.protocols import Sample
from castmates.rdt.choose import CacheRequest, Driver, NoAllocator, NoMonitor, choose, driver, refuse_hopeless
from castmates.report.figures.index import FIGURES, View, all_figures
from tests.unit.snapshots import assert_as_before, refusal

HERE = SimpleNamespace(name="castmates-strange", version="2.0")


class Steps:
    """A collector that counts how often it is asked, and fails when it is asked to."""

    fails = False

    def __init__(self, cpus):
        self.cpus = cpus

    def attach(self, members):
        pass

    def start(self, active):  # noqa: ARG002
        if self.fails:
            raise OSError("the device is gone")

    def stop(self):
        return [Sample(1, "steps", "host", "cpus", float(len(self.cpus)))]

    def close(self):
        pass

    def about(self):
        return {"steps": "counted"}


def half(slowdowns):
    return 0.5 * slowdowns.mean()


GOOD = View("Strange", "why", drawn_by="json")
NO_MODULE = View("Strange", "why")
NO_PART = View("Strange", "cellar", drawn_by="json")
DRIVER = Driver(lambda: None, lambda: "the strange driver is asleep", lambda _say: NoAllocator("strange"))


@pytest.fixture
def add(monkeypatch):
    """Install an entry point for one test."""

    def plugin(kind, name, what, package=HERE):
        point = EntryPoint(name=name, group=f"castmates.{kind}", value=f"{__name__}:{what}")
        found = (*plugins.installed(), plugins.Plugin(kind, name, package.name, package.version, point))
        monkeypatch.setattr(plugins, "installed", lambda: found)

    all_figures.cache_clear()
    yield plugin
    all_figures.cache_clear()


def test_a_figure_stands_after_ours(add):
    add("figures", "strange", "GOOD")
    assert list(all_figures().values()) == [*FIGURES.values(), GOOD._replace(name="strange")]
    assert all_figures()["strange"].module.__name__ == "json"


def test_a_figure_that_cannot_be_used_is_one_sentence(monkeypatch):
    def said(name, what):
        point = EntryPoint(name=name, group="castmates.figures", value=f"{__name__}:{what}")
        plugin = plugins.Plugin("figures", name, HERE.name, HERE.version, point)
        monkeypatch.setattr(plugins, "installed", lambda: (plugin,))
        all_figures.cache_clear()
        return refusal(all_figures)

    wrong = [
        ("strange", "NOTHING"),
        ("strange", "half"),
        ("strange", "NO_MODULE"),
        ("strange", "NO_PART"),
        ("heatmap", "GOOD"),
    ]
    assert_as_before("plugins", {f"{name} {what}": said(name, what) for name, what in wrong})
    all_figures.cache_clear()


def test_a_collector_is_asked_as_ours_are_and_its_failure_names_the_package(add):
    add("collectors", "steps", "Steps")
    (collector,) = added_collectors([0, 3])
    collector.start([])
    assert [sample.value for sample in collector.stop()] == [2.0]
    assert collector.about() == {"steps": "counted", "package": "castmates-strange 2.0"}
    assert not collector.every_slice
    collector._collector.fails = True
    with pytest.raises(CastmatesError, match=r"castmates-strange 2\.0 failed: OSError: the device is gone"):
        collector.start([])


def test_what_is_no_collector_is_refused(add):
    add("collectors", "steps", "half")
    with pytest.raises(CastmatesError, match=r"castmates-strange 2\.0 failed: AttributeError"):
        added_collectors([0])
    add("collectors", "more", "GOOD")
    with pytest.raises(CastmatesError, match=r"castmates-strange 2\.0 cannot be used"):
        added_collectors([0])


def test_a_metric_is_computed_for_every_launch():
    members = pd.DataFrame({"launch": [1, 1, 2, 2], "slowdown": [1.0, 3.0, 2.0, 2.0]})
    values = system.launch_metrics(members, ["launch"], {"half": half})
    assert list(values["half"]) == [1.0, 1.0]
    assert list(values) == [*system.METRICS, "half"]


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (
            lambda slowdowns: slowdowns.min() - 1,
            "the metric 'mine' of a plug-in came to 0 in a launch, but must be above",
        ),
        (lambda slowdowns: slowdowns.nothing, "the metric 'mine' of a plug-in failed .AttributeError"),
        (lambda slowdowns: np.nan * slowdowns[0], "came to nan in a launch"),
    ],
)
def test_a_metric_without_a_value_above_zero_is_refused(metric, said):
    members = pd.DataFrame({"launch": [1, 1], "slowdown": [1.0, 3.0]})
    with pytest.raises(CastmatesError, match=said):
        system.launch_metrics(members, ["launch"], {"mine": metric})


def test_an_allocator_is_chosen_by_its_name(add):
    add("allocators", "strange", "DRIVER")
    request = CacheRequest(shares=True, rate=0, driver="strange")
    with pytest.raises(CastmatesError, match="no partition can be applied: the strange driver is asleep"):
        refuse_hopeless(request)
    allocator, monitor = choose(request)
    assert allocator.about() == NoAllocator("strange").about()
    assert isinstance(monitor, NoMonitor)


def test_a_study_that_names_an_unknown_allocator_is_refused(tmp_path, add):
    add("allocators", "strange", "DRIVER")
    file = tmp_path / "study.yaml"
    file.write_text("name: s\nleads: [chase]\nantagonists: [stream]\ncache: {driver: strong}\n")
    with pytest.raises(
        CastmatesError, match=r"'cache.driver' is 'strong', did you mean 'strange'\? \(there are: resctrl,"
    ):
        load(file)
    with pytest.raises(CastmatesError, match="'resctl'"):
        driver("resctl")
