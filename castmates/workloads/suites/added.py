"""Suites that plug-ins know: what stands below `suites` in a catalogue file becomes ordinary workloads.

A plug-in is a function. It gets the keys that the user wrote for it, and returns its benchmarks by their short names,
each as it would be written in a catalogue; a ValueError is its way to report what is wrong with the keys.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from castmates import plugins
from castmates.errors import CastmatesError
from castmates.study.model import Catalogue, Workload
from castmates.study.reading import did_you_mean, read_keys

OURS = ("spec2017", "parsec", "npb")


def added_workloads(wanted: Mapping[str, Mapping[str, Any]], file: str) -> Iterator[tuple[str, Workload]]:
    """The benchmarks of each suite that is named, as SUITE.BENCHMARK."""
    if not wanted:
        return
    known = plugins.added("suites", _wrong, taken=OURS)
    for suite, keys in wanted.items():
        if suite not in known:
            meant, there = did_you_mean(suite, known), ", ".join(known) or "none"
            raise CastmatesError(
                f"{file}: no plug-in that is installed here adds the suite '{suite}'{meant} (there are: {there})."
            )
        try:
            found = known[suite](dict(keys))
        except ValueError as problem:
            raise CastmatesError(f"{file}: 'suites.{suite}': {problem}.") from None
        except Exception as problem:  # whatever a plug-in's code raises
            raise plugins.of("suites", suite).broken(f"failed: {type(problem).__name__}: {problem}") from problem
        yield from _checked(suite, found).items()


def _checked(suite: str, found: Any) -> dict[str, Workload]:  # noqa: ANN401 (what a plug-in returns)
    """What it returned, checked as if it stood in a file."""
    plugin = plugins.of("suites", suite)
    try:
        text = yaml.safe_dump({"workloads": {f"{suite}.{name}": dict(keys) for name, keys in found.items()}})
        return dict(read_keys(Catalogue, text, f"what {plugin} returned").workloads)
    except (AttributeError, TypeError, ValueError, yaml.YAMLError) as problem:
        raise plugin.broken(f"returned no workloads by name: {problem}") from problem


def _wrong(thing: object) -> str:
    return "" if callable(thing) else f"it is a {type(thing).__name__}, and no function of the keys"
