"""What all tests share: marks by directory, what a test needs, and how random search goes."""

import os
import signal

import pytest

from tests import needs
from tests.house import ROOT
from tests.kinds import kind_of
from tests.seeds import SEED

PLUGINS = ("unsteady", "order", "unchanged", "sigterm")
pytest_plugins = ["pytester", *(f"tests.plugins.{name}" for name in PLUGINS)]

if "CASTMATES_INSIDE_LAB" not in os.environ:  # its import takes five seconds in there, and nobody uses it
    from hypothesis import HealthCheck, settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    # No assertion on times: the machines are shared. The same 50 examples each time; a landing and the nightly run draw
    # others, and what failed once is tried first from then on.
    settings.register_profile(
        "same", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
    )
    if examples := int(os.environ.get("CASTMATES_RANDOM") or 0):
        kept = DirectoryBasedExampleDatabase(ROOT / ".cache" / "hypothesis")
        settings.register_profile(
            "random", settings.get_profile("same"), derandomize=False, max_examples=examples, database=kept
        )
    settings.load_profile("random" if examples else "same")


def pytest_configure():
    """A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP; tests must not inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.pop("COLUMNS", None)  # some shells pass theirs on, and commands would break their lines there
    if unknown := needs.unknown():
        raise pytest.UsageError(f"CASTMATES_NEEDS: unknown {', '.join(sorted(unknown))}")


def pytest_report_header():
    """Return the seed of this run's random courses, to repeat it."""
    return f"CASTMATES_SEED={SEED}"


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(kind_of(item.nodeid))


def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        needs.insist(*mark.args)
