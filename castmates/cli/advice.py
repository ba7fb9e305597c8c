"""The command `castmates advice`: what is worth knowing of a study, trials of it, and places of jobs."""

from pathlib import Path
from typing import Annotated

from castmates.cli.arguments import Cores, Format, StudiedOrDefault
from castmates.cli.command import INSTEAD, RESULTS, command, only_with, option
from castmates.cli.place import Placing, Solver, place_jobs

TRY, PLACE = only_with("--try"), only_with("--place")
BOTH = only_with("--try", "--confirm")
SOLVING = 60.0


@command(
    "advice",
    "castmates advice study.yaml",
    "castmates advice study.yaml --try input-bound/dlrm-train",
    "castmates advice study.yaml --place --jobs jobs.yaml",
    group=RESULTS,
    order=5,
)
def advice(
    study: StudiedOrDefault,
    everything: Annotated[
        bool, option("--all", help="Also what is suspected, what is not shown, and what is not known, and why.")
    ] = False,
    form: Format = "text",
    finding: Annotated[
        str,
        option(
            "--try",
            metavar="FINDING",
            help="Measure what this advice gives: the lead as it is and changed, in fresh launches in mixed order.",
            under=INSTEAD,
        ),
    ] = "",
    place: Annotated[
        bool,
        option(
            "--place",
            help="Show which jobs should share which last-level cache, for a limit on what each may lose.",
            under=INSTEAD,
        ),
    ] = False,
    options: Annotated[
        list[str] | None,
        option(
            "--set", metavar="NAME=VALUE", help="An option of the lead to change, in place of the rule's.", under=TRY
        ),
    ] = None,
    variables: Annotated[
        list[str] | None,
        option(
            "--variable", metavar="NAME=VALUE", help="An environment variable of the lead to try instead.", under=TRY
        ),
    ] = None,
    cpus: Annotated[
        int | None, option(min=1, metavar="N", help="How many CPUs to give the lead instead.", under=TRY)
    ] = None,
    jobs: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="A YAML file with the keys of `place`: jobs, domains, cores … The study's if left out.",
            under=PLACE,
        ),
    ] = None,
    machine: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Place on the machine that `castmates doctor --capture` wrote into this file.",
            under=PLACE,
        ),
    ] = None,
    solver: Annotated[
        Solver,
        option(help="auto: try all groupings where they are few, else an integer programme (HiGHS).", under=PLACE),
    ] = "auto",
    seconds: Annotated[
        float,
        option(
            min=1.0,
            max=86_400.0,
            metavar="S",
            help="That the integer programme may take for each grouping.",
            under=PLACE,
        ),
    ] = SOLVING,
    confirm: Annotated[
        bool, option("--confirm", help="Measure the best three groupings, each group by itself.", under=PLACE)
    ] = False,
    launches: Annotated[
        int | None,
        option(
            min=3, max=10_000, metavar="N", help="Fresh launches; the study's own number, and at least 3.", under=BOTH
        ),
    ] = None,
    cores: Cores = "all",
    only_write: Annotated[
        bool, option("--only-write", help="Write the study files and measure nothing.", under=BOTH)
    ] = False,
) -> None:
    """Show findings and what to do about them; try an advice, place jobs."""
    if not (finding or place):
        from castmates.cli.findings import show_findings

        show_findings(study, everything, form == "json")
        return
    from castmates.linux.ownership import refuse_strangers
    from castmates.results.find import study_file

    file = study_file(study)
    refuse_strangers(file)
    if finding:
        from castmates.cli.try_advice import Change, try_advice

        try_advice(file, finding, Change(options or [], variables or [], cpus), launches, cores, only_write)
    else:
        place_jobs(file, Placing(jobs, machine, confirm, launches, only_write, solver, seconds), cores, form == "json")
