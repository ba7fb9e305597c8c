"""Who disturbed launches: the programs of others that took most of the CPUs around them."""

from collections.abc import Sequence
from pathlib import Path

from castmates.results.columns.launch import table_file
from castmates.results.launch_tables import read
from castmates.runner.others import shares, taken


def busy_words(places: Sequence[Path]) -> str:
    """Who took how much beside these launches; "" where nobody was seen, as where a hypervisor took the time."""
    places = [place for place in places if (place / table_file("samples")).is_file()]
    if not places:
        return ""
    slices = read(places, "slices", ["cohort", "launch", "slice", "open_ns", "close_ns"])
    own = slices.drop_duplicates(["cohort", "launch", "slice"])
    seconds = float((own["close_ns"] - own["open_ns"]).sum()) / 1e9
    samples = read(places, "samples", ["subject", "metric", "value", "note"])
    return shares(taken(samples.itertuples(index=False, name=None)), seconds)
