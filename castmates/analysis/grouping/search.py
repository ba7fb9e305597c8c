"""The best groupings of a problem: by trying all where they are few, else by an integer programme."""

import time
from typing import Literal

from castmates.analysis.grouping.exhaustive import MOST_SEEN, try_all
from castmates.analysis.grouping.groups import Groups
from castmates.analysis.grouping.milp import TIME_LIMIT, solve
from castmates.analysis.grouping.problem import FoundGroups
from castmates.errors import CastmatesError

BEST = 3  # groupings that are shown and confirmed
MOST_GROUPS = 2000  # of which all groupings are tried by itself: more make too many
Solver = Literal["auto", "exhaustive", "milp"]


def search(
    groups: Groups, solver: Solver = "auto", best: int = BEST, seconds: float = TIME_LIMIT, most_seen: int | None = None
) -> FoundGroups:
    """The best groupings; none where losses are not known well enough for any."""
    begun, problem, every = time.monotonic(), groups.problem, groups.every()
    if solver == "exhaustive" or (solver == "auto" and len(every) <= MOST_GROUPS):
        tried = try_all(problem, every, best, most_seen or MOST_SEEN)
        if tried is not None:
            found, seen = tried
            return FoundGroups(tuple(found), "exhaustive", len(every), seen, seconds=time.monotonic() - begun)
        if solver == "exhaustive":
            raise CastmatesError(
                f"these jobs can be grouped in more than {most_seen or MOST_SEEN} ways, too many to try all of them; "
                "use the solver 'milp'."
            )
    solved, gap = solve(problem, every, best, seconds)
    return FoundGroups(tuple(solved), "milp", len(every), gap=gap, seconds=time.monotonic() - begun)
