"""The facts of the nodes that measured a part of a study, such as a class of nodes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from castmates.results.folder import StudyFolder
from castmates.results.records import read_json

if TYPE_CHECKING:
    import pandas as pd

    from castmates.study.spec import Plan

Facts = Mapping[str, Any]


def facts_of_nodes(folder: StudyFolder, part: "Plan", windows: "pd.DataFrame", machine: Facts) -> list[Facts]:
    """By node, the one with the most launches of this part first; `machine` is what machine.json has.

    A node of which nothing is known has no facts. A modelled class has those of its model.
    """
    if part.machine in (modelled := machine.get("classes", {})):
        return [modelled[part.machine]]
    return [
        machine if host == machine.get("hostname") else read_json(folder.node_file(host))
        for host in _hosts(part, windows)
    ]


def _hosts(part: "Plan", windows: "pd.DataFrame") -> list[str]:
    """Who measured launches of this part."""
    import pandas as pd

    places = pd.MultiIndex.from_tuples([(launch.cohort.id, launch.number) for launch in part.launches])
    launches = windows.loc[windows["host"] != "", ["cohort", "launch", "host"]].drop_duplicates()
    counts = launches.loc[pd.MultiIndex.from_frame(launches[["cohort", "launch"]]).isin(places), "host"].value_counts()
    return sorted(map(str, counts.index), key=lambda host: (-int(counts[host]), host))
