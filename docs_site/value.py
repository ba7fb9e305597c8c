"""A number of a study, in the words of a page: `python -m docs_site.value WHAT STUDY LEAD NEIGHBOURS …`.

loss … [PARTITION]       45.6 % [45.1, 46.0]
rounded … [PARTITION]    46 %
verdict … [PARTITION]    loss
fresh … PARTITION        the loss in fresh launches of `castmates sweep --confirm`
part … PART              points of a part of the loss, with the interval
knee …                   the fewest ways that are enough, with the interval
controls                 each control with its verdict
"""

import sys
from typing import Any

from castmates.report.results import records
from castmates.report.text.words import Quantity, number
from castmates.results.columns.partitions import KNEES
from castmates.results.columns.study import ATTRIBUTION, CONTROLS, EFFECTS
from castmates.results.confirming import folder_of, study_files
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables
from castmates.study.spec import UNMANAGED


def main(what: str, study: str, *where: str) -> str:
    """The words."""
    tables = Tables(StudyFolder.of(study))
    if what == "fresh":
        return _fresh(study, *where)
    if what == "part":
        return _part(tables, *where)
    if what == "knee":
        return _knee(tables, *where)
    if what == "controls":
        return "; ".join(f"{row['control']} of {row['lead']} {row['verdict']}" for row in _controls(tables))
    lead, neighbours, partition = (*where, UNMANAGED)[:3]
    rows = tables.read(EFFECTS)
    wanted = (rows["lead"] == lead) & (rows["antagonists"] == neighbours) & (rows["partition"] == partition)
    row = records(rows[wanted & (rows["role"] == "lead") & (rows["baseline"] == "alone")])[0]
    if what == "verdict":
        return str(row["verdict"])
    if what == "rounded":
        return f"{number(row['loss_pct'], 0)} %"
    return Quantity.of(row, "loss_pct", "%").whole


def _fresh(study: str, lead: str, neighbours: str, partition: str) -> str:
    """The loss in the study that confirms a partition."""
    here = StudyFolder.of(study)
    for folder in (folder_of(file, here) for file in study_files(here)):
        if (Tables(folder).read(EFFECTS)["partition"] == partition).any():
            return main("loss", folder.path.name, lead, neighbours, partition)
    raise SystemExit(f"results/{study}/confirm has no study of {partition}")


def _controls(tables: Tables) -> list[dict[str, Any]]:
    return records(tables.read(CONTROLS))


def _part(tables: Tables, lead: str, neighbours: str, part: str) -> str:
    """Percentage points of one part of a loss."""
    rows = tables.read(ATTRIBUTION)
    wanted = (rows["lead"] == lead) & (rows["antagonists"] == neighbours) & (rows["part"] == part)
    row = records(rows[wanted])[0]
    return Quantity.of(row, "points", "points").whole


def _knee(tables: Tables, lead: str, neighbours: str) -> str:
    rows = tables.read(KNEES)
    row = records(rows[(rows["lead"] == lead) & (rows["antagonists"] == neighbours)])[0]
    return f"{row['knee']} ways [{row['knee_low']}, {row['knee_high']}]"


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
