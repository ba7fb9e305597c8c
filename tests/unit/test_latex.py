"""Text and tables as LaTeX: nothing that LaTeX would read as a command, and environments that close."""

import re

from hypothesis import given
from hypothesis import strategies as st

from castmates.report.paper import methods
from castmates.report.paper.crate import as_bibtex

COMMAND = re.compile(r"\\(?:[a-z]+(?:\{\})?|[{}$&#%_])|\$[^$]*\$")
ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126))


def test_every_special_sign_is_escaped():
    assert methods.escaped(r"50 % of a_b & c#1 {x} $5 ~^\<>|") == (
        r"50 \% of a\_b \& c\#1 \{x\} \$5 "
        r"\textasciitilde{}\textasciicircum{}\textbackslash{}\textless{}\textgreater{}\textbar{}"
    )
    assert methods.escaped("\N{MINUS SIGN}0.2 ±2 % × 3 – 4†") == r"$-$0.2 $\pm$2 \% $\times$ 3 -- 4\dag{}"
    assert methods.escaped("one\n\n  two") == "one two"


@given(ASCII)
def test_nothing_is_left_that_latex_would_read(text):
    rest = COMMAND.sub("", methods.escaped(text))
    assert not set(rest) & set('\\{}$&#%_^~<>|"'), rest


def test_tables_close_and_have_as_many_cells_as_columns():
    rows = [["a&b", "[1, 2]", "3"]] * (methods.ROWS + 2)
    text = methods.tables("tab:x", "Losses & gains of a_b", ["Name", "95 % interval", "n"], "lrr", rows)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 2
    assert re.findall(r"\\label\{(.*)\}", text) == ["tab:x", "tab:x-2"]
    assert text.count(r"\caption{Losses \& gains of a\_b (continued)}") == 1
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(lines) == methods.ROWS + 2 + 2
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {2}
    assert not re.search(r"^\s*\[", text, flags=re.MULTILINE)


def test_a_page_ends_before_the_row_that_names_the_next_ones():
    rows = [[name if not place else "", str(place)] for name in "abcdefgh" for place in range(9)]
    pages = re.findall(
        r"\\midrule\n(.*?)\\bottomrule", methods.tables("x", "", ["A", "B"], "ll", rows), flags=re.DOTALL
    )
    assert [page.split()[0] for page in pages] == ["a", "e"]
    assert "".join(pages).count("\\\\") == len(rows)
    endless = methods.tables("x", "", ["A"], "l", [["a"], *[[""]] * 100])
    assert endless.count(r"\begin{table}") == 3


@given(st.lists(st.sampled_from(["a", ""]), max_size=200))
def test_no_row_is_lost_on_the_way_to_the_next_page(names):
    rows = [[name, str(place)] for place, name in enumerate(names)]
    parts = methods._pages(rows)
    assert [row for part in parts for row in part] == rows
    assert all(len(part) <= methods.ROWS for part in parts)


def test_the_citation_tells_only_what_the_file_tells():
    told = {
        "title": "A & B",
        "authors": [{"family-names": "Doe", "given-names": "Jo"}, {"name": "The team"}],
        "license": "X-1_0",
    }
    text = as_bibtex(told, "0.2")
    assert "author = {Doe, Jo and {The team}}" in text
    assert r"title = {{A \& B}}" in text
    assert r"note = {Licence: X-1\_0}" in text
    assert "year" not in text
    assert "url" not in text
    assert text.count("{") == text.count("}")
