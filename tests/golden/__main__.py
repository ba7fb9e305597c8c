"""Writes the golden tables and page anew: `python -m tests.golden`. Look at what changed before you commit it."""

import json
import tempfile
from pathlib import Path

from tests.golden.report import PAGE, TABLES, make

with tempfile.TemporaryDirectory() as folder:
    tables, page = make(Path(folder) / "golden")
TABLES.mkdir(exist_ok=True)
for old in TABLES.glob("*.csv"):
    old.unlink()
for name, text in tables.items():
    (TABLES / f"{name}.csv").write_text(text)
PAGE.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n")
