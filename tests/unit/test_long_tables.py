"""Long tables: the later rows stand beside the table, none is lost, changed or out of order."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.report.page.common_parts import ROW, SHOWN, TEMPLATES, environment, folded

TEXT = """<p>{{ words }}</p>
<div class="scroll">
<table class="sortable">
  <caption>Rows</caption>
  <thead><tr><th scope="col">Name</th></tr></thead>
  <tbody>
  {% for row in rows %}
  <tr><th scope="row">{{ row }}</th>
    <td data-value="{{ loop.index }}">{{ loop.index }} <span>{{ row }}</span></td></tr>
  {% endfor %}
  </tbody>
</table>
</div>
<p>{{ words }}</p>
"""


def page(rows, words="after"):
    return environment().from_string(TEXT).render(rows=rows, words=words)


def body_rows(html):
    return [re.sub(r"\s*\n\s*", "", row) for row in ROW.findall(html) if "<thead>" not in row and "col" not in row]


def test_a_table_that_is_not_long_stays_as_it_is():
    html = page(range(SHOWN))
    assert folded(html) == html


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(), min_size=SHOWN + 1, max_size=SHOWN + 9), st.text())
def test_no_row_of_a_long_table_is_lost_or_changed(rows, words):
    html = page(rows, words)
    changed = folded(html)
    assert body_rows(changed) == body_rows(html)
    table, beside = changed.split('<noscript class="later">')
    assert len(ROW.findall(table)) == SHOWN + 1
    assert len(ROW.findall(beside)) == len(rows) - SHOWN + 1
    assert changed.count("<thead>") == 2


def test_each_long_table_has_its_own_rows_beside_it():
    tables = folded(page([f"a{n}" for n in range(60)]) + page(range(3)) + page([f"b{n}" for n in range(70)]))
    beside = re.findall(r"<noscript.*?</noscript>", tables, re.DOTALL)
    assert [("a59" in one, "b69" in one) for one in beside] == [(True, False), (False, True)]
    assert "Rows 51 to 70 of the table above" in beside[1]


def test_the_script_folds_where_the_page_is_cut():
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    assert re.findall(r"const FOLD = (\d+);", script) == [str(SHOWN)]
