"""Writes the golden tables, page and digests anew: `python -m tests.golden`. Look at the changes before you commit."""

import json
import tempfile
from pathlib import Path

from tests.golden.digests import DIGESTS, digests
from tests.golden.report import PAGE, TABLES, make

with tempfile.TemporaryDirectory() as folder:
    tables, page = make(Path(folder) / "golden")
TABLES.mkdir(exist_ok=True)
for old in TABLES.glob("*.csv"):
    old.unlink()
for name, text in tables.items():
    (TABLES / f"{name}.csv").write_text(text)
PAGE.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n")
DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n")
