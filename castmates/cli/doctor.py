"""The command `castmates doctor`: what this machine can do, a trial of it, permissions, and its repair."""

import json
from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.command import BEGIN, CATALOGUE, INSTEAD, Format, command, only_with, option
from castmates.cli.screen import show
from castmates.errors import CastmatesError

GRANT, TRUTH = only_with("--grant"), only_with("--truth")


@command(
    "doctor",
    "castmates doctor",
    "castmates doctor --all",
    "castmates doctor --truth",
    "castmates doctor --capture FILE",
    "sudo castmates doctor --grant",
    "sudo castmates doctor --restore",
    group=BEGIN,
    order=2,
)
def doctor(
    everything: Annotated[bool, option("--all", help="Every row, and what each lack costs.")] = False,
    form: Format = "text",
    capture: Annotated[
        Path | None,
        option(metavar="FILE", help="Write this machine into a file, for a report or `castmates plan`.", under=INSTEAD),
    ] = None,
    verify_rdt: Annotated[
        bool, option("--verify-rdt", help="Test masks, throttles and eviction against a neighbour.", under=INSTEAD)
    ] = False,
    memory_peak: Annotated[
        bool, option("--memory-peak", help="Measure the memory bandwidth of a package, by cores.", under=INSTEAD)
    ] = False,
    verify_counters: Annotated[
        bool, option("--verify-counters", help="Test whether counters count correctly on this machine.", under=INSTEAD)
    ] = False,
    truth: Annotated[
        bool,
        option("--truth", help="Test whether known losses are found on this machine; status 1 if not.", under=INSTEAD),
    ] = False,
    grant: Annotated[
        bool,
        option(
            "--grant",
            help="As root: give a user, once, what sweeps need without root; each step is printed.",
            under=INSTEAD,
        ),
    ] = False,
    granted: Annotated[bool, option("--granted", help="Show what is granted.", under=INSTEAD)] = False,
    undo: Annotated[bool, option("--undo", help="As root: undo all grants.", under=INSTEAD)] = False,
    restore: Annotated[
        bool,
        option(
            "--restore",
            help="Put right what killed runs have left: changed knobs, control groups, scratch folders.",
            under=INSTEAD,
        ),
    ] = False,
    minutes: Annotated[
        float,
        option(min=0, max=600, metavar="N", help="How long losses are measured, in at least 3 launches.", under=TRUTH),
    ] = 4.0,
    user: Annotated[
        str | None, option(metavar="NAME", help="Who runs sweeps; the user who called sudo if left out.", under=GRANT)
    ] = None,
    groups: Annotated[
        int, option(min=1, max=1000, metavar="N", help="Largest number of groups with separate masks.", under=GRANT)
    ] = 6,
    default_group: Annotated[
        bool, option("--default-group", help="Also the masks of all processes that are in no group.", under=GRANT)
    ] = False,
    shell: Annotated[
        int | None,
        option(min=2, metavar="PID", help="The shell that starts sweeps; the calling one if left out.", under=GRANT),
    ] = None,
    tracing: Annotated[
        bool,
        option(
            "--tracing",
            help="Also traces of who wakes and who runs instead: these show all programs here.",
            under=GRANT,
        ),
    ] = False,
) -> None:
    """Show what this machine can measure, and what you can change."""
    if capture is not None or verify_rdt or memory_peak or verify_counters or truth:
        from castmates.linux.ownership import refuse_strangers

        refuse_strangers()  # these start what is in the cache
    if capture is not None:
        _capture(capture)
    elif verify_rdt:
        _verify_rdt()
    elif memory_peak:
        _memory_peak()
    elif verify_counters:
        _verify_counters(form == "json")
    elif truth:
        _truth(minutes, form == "json")
    elif restore:
        restore_machine()
    elif grant or granted or undo:
        from castmates.grant import grant as steps

        if grant:
            steps.give(user, groups, default_group, shell, typer.echo, everything_traced=tracing)
        elif undo:
            steps.undo(typer.echo)
        else:
            steps.show(typer.echo)
    else:
        _examine(everything, form == "json")


def restore_machine() -> None:
    """Put right what killed runs have left."""
    from castmates.runner.cleanup.restore import restore_everything

    restored = restore_everything()
    for sentence in restored.done or ([] if restored.left else ["nothing to restore"]):
        typer.echo(sentence)
    if restored.left:
        raise CastmatesError("; ".join(restored.left))


def _examine(everything: bool, as_json: bool) -> None:
    """Print the result of the checks of this machine, or each of them."""
    from castmates import plugins
    from castmates.files import cache_folder
    from castmates.machine import trial_records
    from castmates.machine.doctor.examine import as_json as text_of
    from castmates.machine.doctor.examine import as_table, examine
    from castmates.machine.facts import machine_facts
    from castmates.machine.topology import read_topology
    from castmates.workloads import written

    topology, cache = read_topology(), cache_folder()
    facts = machine_facts(topology=topology) | {
        **{name: trial.read(cache) for name, trial in trial_records.SHOWN.items()},
        "counts": trial_records.COUNTERS.read(cache),
        "packages": written.missing_packages(CATALOGUE),
        "plugins": plugins.examined(),
    }
    checks = examine(facts, topology)
    if as_json:
        typer.echo(text_of(checks))
    elif everything:
        show(as_table(checks))
    else:
        from castmates.machine.doctor.capabilities import summarise
        from castmates.machine.doctor.examine import screen

        show(screen(summarise(checks, facts, topology)))


def _capture(file: Path) -> None:
    """Write this machine into a file, and list what it lacks."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.capture import capture

    capture(file, ENVIRONMENTS, cache_folder(), typer.echo)


def _verify_rdt() -> None:
    """Measure beside a neighbour under masks and throttles, and print what they do."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.rdt.trial import verify

    verify(ENVIRONMENTS, cache_folder(), typer.echo)


def _memory_peak() -> None:
    """Measure what more and more cores take of memory bandwidth, and keep the record."""
    from castmates.files import cache_folder
    from castmates.machine.topology import read_topology
    from castmates.project import ENVIRONMENTS, layout_of
    from castmates.trials.memory_peak import measure

    measure(ENVIRONMENTS, cache_folder(), layout_of(read_topology()), typer.echo)


def _verify_counters(as_json: bool) -> None:
    """Count what is known, print the table, and end with an error where a count is wrong."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials.counters import table

    record = table.verify(ENVIRONMENTS, cache_folder(), lambda line: typer.echo(line, err=True))
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        show(table.as_table(record))
    table.raise_if_wrong(record)


def _truth(minutes: float, as_json: bool) -> None:
    """Inject losses, measure them, print both, and end with an error where they differ."""
    from castmates.cli.screen import show_json
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.trials import known_losses

    record = known_losses.verify(ENVIRONMENTS, cache_folder(), minutes, lambda line: typer.echo(line, err=True))
    if as_json:
        show_json(record)
    else:
        show(known_losses.as_table(record))
    known_losses.raise_unless_found(record)
    if not as_json:
        typer.echo(record["said"])
