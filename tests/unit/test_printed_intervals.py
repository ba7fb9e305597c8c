"""No interval is printed that the list in docs/methodology.md lacks, and each line names a test that there is."""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from castmates import analysis, report
from castmates.results import columns
from tests.unit.printed_intervals import assert_told, listed, row_of

HERE = Path(__file__).parent
KNOWN_ELSEWHERE = {
    "costs",
    "trial of masks",
    "trial of isolation",
    "trial of throttles",
    "figure topdown, the largest",
    "health page",
}  # no table of columns has these


def modules(package):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield found.name.rpartition(".")[2], importlib.import_module(found.name)


def contracts():
    """What tables and figures print, by name: each list of columns once, where it is made."""
    seen = set()
    for package in (columns, analysis, report):
        for module, content in modules(package):
            for name, value in vars(content).items():
                if not name.isupper() or name.startswith("_") or id(value) in seen:
                    continue
                if isinstance(value, Mapping | list | tuple) and lower_ends(value):
                    seen.add(id(value))
                    yield printed_as(package, module, name.lower()), lower_ends(value)


def printed_as(package, module, name):
    if package is report:
        return f"figure {module.removesuffix('_rows')}"
    return name if package is columns or module == name else f"{module}.{name}"


def lower_ends(names):
    return [one for one in names if isinstance(one, str) and (one == "low" or one.endswith("_low"))]


@pytest.mark.parametrize(("printed", "ends"), [pytest.param(*one, id=one[0]) for one in contracts()])
def test_every_interval_is_in_the_list(printed, ends):
    for column in ends:
        assert row_of(printed, column).tests


def test_the_list_has_nothing_that_is_not_printed():
    known = {(printed, column) for printed, ends in contracts() for column in ends}
    assert len(known) > 40
    for row in listed():
        here = [one for one in known if one[0] in row.printed and one[1] in row.columns]
        assert {printed for printed, _ in here} | KNOWN_ELSEWHERE >= set(row.printed), row
        assert {column for _, column in here} == set(row.columns) or KNOWN_ELSEWHERE & set(row.printed), row


def test_the_tests_that_it_names_are_there():
    for test in {test for row in listed() for test in row.tests}:
        module, _, function = test.partition("::")
        assert re.search(rf"^def {function}\(", (HERE / module).read_text(), re.MULTILINE), test


def test_a_share_that_the_list_does_not_say_is_seen():
    row = row_of("effects", "slowdown_low")
    assert_told("effects", "slowdown_low", row.low / 100, row.high / 100)
    for share in (row.low - 1, row.high + 1):
        with pytest.raises(AssertionError, match=r"docs/methodology\.md says"):
            assert_told("effects", "slowdown_low", share / 100)
    with pytest.raises(AssertionError, match="0 lines"):
        row_of("effects", "new_low")
