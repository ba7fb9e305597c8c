"""The command `castmates doctor`: what this machine can do, or a trial of it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from castmates import plugins


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    snapshot: Annotated[
        Path | None, typer.Option(help="Record this machine's CPUs, caches and nodes in this file instead.")
    ] = None,
    verify_cat: Annotated[
        bool, typer.Option("--verify-cat", help="Try instead whether way masks do something on this machine.")
    ] = False,
    verify_counters: Annotated[
        bool, typer.Option("--verify-counters", help="Try instead whether counters count right on this machine.")
    ] = False,
) -> None:
    """Show what this machine can and cannot do, what each "no" costs, and how to change it."""
    if snapshot is not None:
        from castmates.machine.snapshot import record

        record(snapshot)
    elif verify_cat:
        _verify_cat()
    elif verify_counters:
        _verify_counters(as_json)
    else:
        _examine(as_json)


def _examine(as_json: bool) -> None:
    """Print the checks of this machine."""
    from castmates.cli.workloads import CATALOGUE
    from castmates.files import cache_folder
    from castmates.machine import trial_records
    from castmates.machine.doctor.doctor import as_json as text_of
    from castmates.machine.doctor.doctor import as_table, examine
    from castmates.machine.facts import machine_facts
    from castmates.machine.topology import read_topology
    from castmates.workloads import packages

    topology, cache = read_topology(), cache_folder()
    facts = machine_facts(topology=topology) | {
        "way_masks": trial_records.WAY_MASKS.read(cache),
        "counts": trial_records.COUNTERS.read(cache),
        "packages": packages.missing(CATALOGUE),
        "plugins": plugins.examined(),
    }
    checks = examine(facts, topology)
    if as_json:
        typer.echo(text_of(checks))
    else:
        _print(as_table(checks))


def _verify_cat() -> None:
    """Measure under different way masks, and print what they do."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.way_masks.trial import verify

    verify(ENVIRONMENTS, cache_folder(), typer.echo)


def _verify_counters(as_json: bool) -> None:
    """Count what is known, print the table, and end with an error where a count is wrong."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.counters import check, table

    record = check.verify(ENVIRONMENTS, cache_folder(), lambda line: typer.echo(line, err=True))
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        _print(table.as_table(record))
    check.raise_if_wrong(record)


def _print(table: object) -> None:
    from rich.console import Console

    Console(highlight=False).print(table)
