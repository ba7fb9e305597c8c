"""The command `castmates doctor`: what this machine can do, or a trial of it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from castmates import plugins
from castmates.cli.arguments import CATALOGUE, AsJson
from castmates.cli.screen import show


def doctor(
    everything: Annotated[bool, typer.Option("--all", help="Every row, and what each lack costs.")] = False,
    as_json: AsJson = False,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write this machine into a file instead, for a report or `castmates plan`."),
    ] = None,
    verify_cat: Annotated[
        bool, typer.Option("--verify-cat", help="Test instead whether way masks have an effect on this machine.")
    ] = False,
    memory_peak: Annotated[
        bool, typer.Option("--memory-peak", help="Measure instead the memory bandwidth of a package, by cores.")
    ] = False,
    verify_counters: Annotated[
        bool, typer.Option("--verify-counters", help="Test instead whether counters count correctly on this machine.")
    ] = False,
) -> None:
    """Show what can be measured on this machine, what you can change, and what takes another machine."""
    if capture is not None or verify_cat or memory_peak or verify_counters:
        from castmates.linux.ownership import refuse_strangers

        refuse_strangers()  # these start what is in the cache
    if capture is not None:
        _capture(capture)
    elif verify_cat:
        _verify_cat()
    elif memory_peak:
        _memory_peak()
    elif verify_counters:
        _verify_counters(as_json)
    else:
        _examine(everything, as_json)


def _examine(everything: bool, as_json: bool) -> None:
    """Print the result of the checks of this machine, or each of them."""
    from castmates.files import cache_folder
    from castmates.machine import trial_records
    from castmates.machine.doctor.doctor import as_json as text_of
    from castmates.machine.doctor.doctor import as_table, examine
    from castmates.machine.facts import machine_facts
    from castmates.machine.topology import read_topology
    from castmates.workloads import packages

    topology, cache = read_topology(), cache_folder()
    facts = machine_facts(topology=topology) | {
        **{name: trial.read(cache) for name, trial in trial_records.SHOWN.items()},
        "counts": trial_records.COUNTERS.read(cache),
        "packages": packages.missing(CATALOGUE),
        "plugins": plugins.examined(),
    }
    checks = examine(facts, topology)
    if as_json:
        typer.echo(text_of(checks))
    elif everything:
        show(as_table(checks))
    else:
        from castmates.machine.doctor.capabilities import summarise
        from castmates.machine.doctor.screen import screen

        show(screen(summarise(checks, facts, topology)))


def _capture(file: Path) -> None:
    """Write this machine into a file, and list what it lacks."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.capture.take import capture

    capture(file, ENVIRONMENTS, cache_folder(), typer.echo)


def _verify_cat() -> None:
    """Measure under different way masks, and print what they do."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.way_masks.trial import verify

    verify(ENVIRONMENTS, cache_folder(), typer.echo)


def _memory_peak() -> None:
    """Measure what more and more cores take of memory bandwidth, and keep the record."""
    from castmates.files import cache_folder
    from castmates.machine.topology import read_topology
    from castmates.project import ENVIRONMENTS, layout_of
    from castmates.trials.memory_peak.trial import measure

    measure(ENVIRONMENTS, cache_folder(), layout_of(read_topology()), typer.echo)


def _verify_counters(as_json: bool) -> None:
    """Count what is known, print the table, and end with an error where a count is wrong."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.counters import check, table

    record = check.verify(ENVIRONMENTS, cache_folder(), lambda line: typer.echo(line, err=True))
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        show(table.as_table(record))
    check.raise_if_wrong(record)
