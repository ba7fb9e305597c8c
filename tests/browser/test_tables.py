"""The page's tables in a real browser: they sort, filter and fold, with the keyboard too, and show it."""

import re

import pytest

from castmates.report.page.common_parts import ROW

# What stands in the effects' table as it is shown: the texts of a column, top down.
COLUMN = """(number) => [...document.querySelectorAll('[aria-label="Table of effects"] tbody tr')]
  .filter(row => row.offsetHeight).map(row => row.cells[number].textContent)"""
TOOLS = """document.querySelector('[aria-label="Filter: Table of effects"]').closest(".tools")"""
HEAD = """document.querySelectorAll('[aria-label="Table of effects"] thead th')"""
LOSS = 4  # the column of the loss


def column(tab, number=LOSS):
    return tab.ask(f"({COLUMN})({number})")


def losses(tab):
    """The numbers behind the column, which also has gains, in words."""
    values = tab.ask(f"({COLUMN.replace('textContent', 'dataset.value')})({LOSS})")
    return [float(value) for value, text in zip(values, column(tab), strict=True) if text != "–"]


def press_head(tab, number=LOSS):
    tab.ask(f"{HEAD}[{number}].querySelector('button').click()")
    return tab.ask(f"{HEAD}[{number}].getAttribute('aria-sort')")


def type_filter(tab, words):
    tab.ask(f"(() => {{ const box = {TOOLS}.querySelector('input'); box.focus(); box.value = ''; }})()")
    tab.call("Input.insertText", text=words)


def said(tab):
    return tab.ask(f"{TOOLS}.querySelector('[aria-live=polite]').textContent")


def unfold(tab):
    tab.ask(f"{TOOLS}.querySelector('button').click()")


def rows_of_effects(file):
    """The HTML of all rows of the table, those beside it too."""
    text = file.read_text(encoding="utf-8")
    begin = text.index('aria-label="Table of effects"')
    return [row for row in ROW.findall(text[begin : text.index("</noscript>", begin)]) if 'scope="row"' in row]


@pytest.fixture
def opened(tab, usual):
    tab.open(usual)
    tab.unfold()
    return tab


def test_a_header_sorts_up_down_and_back(opened):
    before = column(opened)
    assert press_head(opened) == "ascending"
    assert losses(opened) == sorted(losses(opened))
    assert said(opened) == f"{len(before)} rows, by Loss (%), ascending"
    assert press_head(opened) == "descending"
    assert losses(opened) == sorted(losses(opened), reverse=True)
    assert press_head(opened) is None
    assert column(opened) == before


def test_only_one_header_says_that_it_sorts(opened):
    press_head(opened)
    press_head(opened, 0)
    assert opened.ask(f"[...{HEAD}].filter(head => head.ariaSort).length") == 1
    assert column(opened, 0) == sorted(column(opened, 0))


@pytest.mark.parametrize("presses", [1, 2])
def test_what_is_missing_comes_last_both_ways(opened, presses):
    opened.ask(f"(() => {{ const cell = {HEAD}[0].closest('table').tBodies[0].rows[2].cells[{LOSS}];"
               "cell.dataset.value = 'nan'; cell.textContent = '–'; })()")  # fmt: skip
    for _ in range(presses):
        press_head(opened)
    assert column(opened)[-1] == "–"
    assert column(opened).count("–") == 1


def test_numbers_are_sorted_as_numbers(opened):
    opened.ask(f"""[..."10 9 100 -2".split(" ").entries()].forEach(([place, text]) => {{
      const cell = {HEAD}[0].closest("table").tBodies[0].rows[place].cells[{LOSS}];
      cell.dataset.value = text; cell.textContent = text; }})""")
    press_head(opened)
    assert losses(opened) == sorted(losses(opened))
    assert 100 in losses(opened)


def test_a_filter_keeps_the_rows_with_all_words_and_tells_how_many(opened):
    rows = list(zip(column(opened, 0), column(opened, 1), column(opened, 3), strict=True))
    type_filter(opened, "RESNET placebo")
    wanted = [row for row in rows if "resnet" in "".join(row) and row[2] == "placebo"]
    assert list(zip(column(opened, 0), column(opened, 1), column(opened, 3), strict=True)) == wanted
    assert 0 < len(wanted) < len(rows)
    assert said(opened) == f"{len(wanted)} of {len(rows)} rows match"
    press_head(opened)
    assert losses(opened) == sorted(losses(opened))
    assert len(column(opened)) == len(wanted)
    type_filter(opened, "no such row")
    assert column(opened) == []
    assert said(opened).startswith(f"0 of {len(rows)} rows match")


def test_the_keyboard_reaches_filter_and_headers(opened):
    opened.ask(f"{TOOLS}.querySelector('input').focus()")
    opened.press("s", "s")
    assert opened.ask(f"{TOOLS}.querySelector('input').value") == "s"
    opened.press("Tab")  # the table, which scrolls
    assert opened.ask("document.activeElement.getAttribute('aria-label')") == "Table of effects"
    opened.ask(f"{HEAD}[0].querySelector('button').focus()")
    opened.press("Enter", "\r")
    assert opened.ask(f"{HEAD}[0].ariaSort") == "ascending"


def test_a_long_table_is_folded_sorted_as_a_whole_and_unfolds_in_steps(tab, large):
    tab.open(large)
    tab.unfold()
    assert tab.complaints() == []
    every = int(said(tab).split()[0])
    assert every >= 800
    assert len(column(tab)) == 50
    assert said(tab) == f"{every} rows, the first 50 shown"
    numbers = [float(re.findall(r'data-value="([^"]*)"', row)[0]) for row in rows_of_effects(large)]
    assert len(numbers) == every
    press_head(tab)
    press_head(tab)
    assert losses(tab) == pytest.approx(sorted(numbers, reverse=True)[:50], abs=0.051)
    unfold(tab)
    assert len(column(tab)) == 550
    assert said(tab) == f"{every} rows, the first 550 shown, by Loss (%), descending"
    unfold(tab)
    assert losses(tab) == pytest.approx(sorted(numbers, reverse=True), abs=0.051)
    assert tab.ask(f"{TOOLS}.querySelector('button').ariaExpanded") == "true"
    unfold(tab)
    assert len(column(tab)) == 50
    assert tab.ask(f"{TOOLS}.querySelector('button').ariaExpanded") == "false"


def test_only_rows_that_are_shown_are_elements_but_all_are_found(tab, large):
    tab.open(large)
    tab.unfold()
    assert tab.ask("Math.max(...[...document.querySelectorAll('tbody')].map(one => one.rows.length))") == 50
    every = rows_of_effects(large)
    wanted = [row for row in every if "infer-9+beside-train-3" in row]
    assert wanted
    assert not set(wanted) & set(every[:50])
    type_filter(tab, "Infer-9+beside-TRAIN-3")
    assert column(tab, 1) == ["infer-9+beside-train-3"] * len(wanted)


def test_where_no_script_runs_all_rows_are_there(tab, large):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(large)
        lines = tab.call("DOM.getDocument", depth=1)["root"]
        nodes = tab.call("DOM.querySelectorAll", nodeId=lines["nodeId"], selector="tbody tr")["nodeIds"]
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    text = large.read_text(encoding="utf-8")
    assert len(nodes) == len(ROW.findall(text)) - text.count("<thead>")


def test_of_many_pairs_the_first_screen_has_the_most_important(tab, large):
    tab.open(large)
    tab.unfold()
    assert tab.ask("document.querySelectorAll('.pairs tbody tr').length") == 12
    assert tab.ask("document.querySelector('.result').offsetHeight") < 1600
    assert "388 more mixes" in tab.ask("document.querySelector('.result').textContent")
