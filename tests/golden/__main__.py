"""Writes the golden tables, page and digests anew: `python -m tests.golden`. Look at the changes before you commit.

A number that is the same to 1e-9 keeps its digits, so that `git diff` shows what changed and no more.
"""

import json
import tempfile
from pathlib import Path

from tests.golden.digests import DIGESTS, digests
from tests.golden.report import PAGE, TABLES, kept, kept_table, make

with tempfile.TemporaryDirectory() as folder:
    tables, page = make(Path(folder) / "golden")
TABLES.mkdir(exist_ok=True)
before = {file.stem: file.read_text() for file in TABLES.glob("*.csv")}
for gone in before.keys() - tables.keys():
    (TABLES / f"{gone}.csv").unlink()
for name, text in tables.items():
    (TABLES / f"{name}.csv").write_text(kept_table(before.get(name, ""), text))
golden = json.loads(PAGE.read_text()) if PAGE.exists() else {}
PAGE.write_text(json.dumps(kept(golden, page), indent=1, ensure_ascii=False) + "\n")
DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n")
