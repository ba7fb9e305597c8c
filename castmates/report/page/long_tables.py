"""Long tables of a page: rows after the first ones stand beside the table, where a browser does not lay them out.

Thousands of rows make a page that takes half a minute to load and to sort. What stands in `noscript` is mere text where
scripts run, and report.js takes rows from there when they are wanted; where none run it is a second table.
"""

import re

SHOWN = 50  # rows in the table itself, as FOLD in report.js
TABLE = re.compile(
    r'<table class="sortable">(?P<top>.*?)<tbody>(?P<rows>.*?)</tbody>(?P<end>\s*</table>\s*</div>)', re.DOTALL
)
HEAD = re.compile(r"<thead>.*?</thead>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
BETWEEN_TAGS = re.compile(r">\s*\n\s*<")


def folded(page: str) -> str:
    """The page with the later rows of its long tables beside them."""
    return TABLE.sub(_folded, page)


def _folded(table: re.Match[str]) -> str:
    rows = ROW.findall(table["rows"])
    if len(rows) <= SHOWN:
        return table[0]
    first, later = "\n".join(rows[:SHOWN]), "\n".join(BETWEEN_TAGS.sub("><", row) for row in rows[SHOWN:])
    head = HEAD.search(table["top"])
    return (
        f'<table class="sortable">{table["top"]}<tbody>\n{first}\n</tbody>{table["end"]}\n'
        '<noscript class="later"><div class="scroll" tabindex="0" role="group" aria-label="More rows of the table">\n'
        f"<table><caption>Rows {SHOWN + 1} to {len(rows)} of the table above.</caption>\n"
        f"{head[0] if head else ''}<tbody>\n{later}\n</tbody></table></div></noscript>"
    )
