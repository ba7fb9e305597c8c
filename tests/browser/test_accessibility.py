"""axe-core finds nothing wrong with the pages: its rules for contrast, names, roles, order and landmarks."""

import json
from importlib.resources import files

import pytest

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
# For each violation the rule, what is wrong, and where: the first three places.
VIOLATIONS = """axe.run().then(found => JSON.stringify(found.violations.map(one => [one.id, one.help, one.nodes.length,
  ...one.nodes.slice(0, 3).map(node => node.target.join(" ") + ": " + node.failureSummary.replace(/\\s+/g, " "))])))"""
RULES = "axe.run().then(found => found.passes.map(one => one.id))"

# Contrast depends on one of them alone, and so does what lies beside what.
looks = pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)], ids=["narrow, light", "wide, dark"])


def violations(tab):
    tab.ask(f"{AXE}; 1")
    return json.loads(tab.ask(VIOLATIONS))


@looks
def test_nothing_is_wrong_with_the_report(tab, usual, width, dark):
    tab.open(usual, width, dark)
    assert violations(tab) == []
    tab.unfold()
    assert violations(tab) == []
    assert {"color-contrast", "label", "table-duplicate-name"} & set(tab.ask(RULES)), "or nothing was looked at"


@looks
@pytest.mark.parametrize("page", ["compared", "several"])
def test_nothing_is_wrong_with_a_comparison(tab, request, page, width, dark):
    tab.open(request.getfixturevalue(page), width, dark)
    tab.unfold()
    assert violations(tab) == []


def test_what_is_wrong_is_found(tab, usual):
    tab.open(usual)
    tab.ask("document.querySelector('.question').style = 'color: #999; background: #aaa'")
    tab.ask("document.documentElement.lang = ''")
    assert {"color-contrast", "html-has-lang"} <= {rule for rule, *_ in violations(tab)}
