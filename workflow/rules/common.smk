import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

# A clone runs without being installed.
sys.path.insert(0, str(Path(workflow.current_basedir).parents[1]))

from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.machine import trial_records
from castmates.pipeline import failures
from castmates.pipeline.closing import closing_words
from castmates.pipeline.jobs import let_jobs_find_us
from castmates.pipeline.lock import hold_sweep_lock
from castmates.report.figures.index import figure_names
from castmates.results import bundles, confirming, looks
from castmates.results.columns.block import BLOCK_TABLES, RECORD, table_file
from castmates.results.columns.partitions import PARTITION_TABLES
from castmates.results.columns.study import STUDY_TABLES
from castmates.results.rounds import decided_rounds
from castmates.study import schedule
from castmates.study.decisions import without_decision, without_decisions
from castmates.study.looks import needed
from castmates.study.rounds import FIRST_LAUNCHES
from castmates.study.spec import PROTOCOL
from castmates.workloads import environments, inputs

let_jobs_find_us()

# A file given by --configfile is the study itself: `config` has its keys then.
settings = workflow.config_settings
try:
    PROJECT = project.load(
        project.chosen_study(
            settings.config if settings.configfiles else config, settings.configfiles
        )
    )
    PLAN = PROJECT.plan()
except CastmatesError as problem:
    raise WorkflowError(str(problem)) from None
except KeyboardInterrupt:
    raise WorkflowError("ended before anything was begun.") from None

STUDY = PROJECT.study.name
FOLDER = PROJECT.results
CACHE = cache_folder()
BLOCKS = {block.path: block for block in PLAN.blocks}
MEASURED = [block.path for block in FOLDER.measured(PLAN).blocks]
DECIDED = decided_rounds(FOLDER)
MIXES = {mix.name: mix for mix in PLAN.mixes}
FIGURES = figure_names(
    PROJECT.study,
    partitioned=any(mix.partitions for mix in PLAN.mixes),
    phases=any(block.company.lead.phases for block in PLAN.blocks),
    watched=PLAN.cache is not None and bool(PLAN.cache.events),
)


wildcard_constraints:
    study=STUDY,
    look=r"\d+",
    company="[^/]+",
    number=r"\d+",
    bundle=r"\d+",


onstart:
    hold_sweep_lock(FOLDER)


onsuccess:
    print(
        f"\n{closing_words(PROJECT, PLAN)}The report is in {report_page()}",
        file=sys.stderr,
    )


onerror:
    print(
        f"\n{failures.reasons(Path('logs'))}The sweep did not finish; the same command goes on where it stopped.",
        file=sys.stderr,
    )


def report_page():
    return str(FOLDER.page_file)


def mix_files():
    return [str(FOLDER.mix_file(name)) for name in MIXES]


def block_files(name, paths):
    return [str(FOLDER.block(path) / name) for path in paths]


def decision_of_look(number):
    """The companies that went on after a look; Snakemake comes back when the look was taken."""
    taken = checkpoints.take_look.get(study=STUDY, look=number)
    return looks.went_on(Path(taken.output[0]))


def blocks_of_look(wildcards):
    """The blocks that have to be measured before this look."""
    earlier = range(1, int(wildcards.look))
    return needed(PLAN, [decision_of_look(number) for number in earlier])


def earlier_looks(wildcards):
    earlier = range(1, int(wildcards.look))
    return [FOLDER.look_file(number) for number in earlier]


def decisions_of_study():
    """Who went on after each look, up to the last one; none without looks."""
    decisions = []
    for number in range(1, len(PLAN.looks) + 1):
        decisions.append(decision_of_look(number))
        if not decisions[-1]:
            break
    return decisions


def looks_of_study():
    return [
        FOLDER.look_file(number)
        for number, _ in enumerate(decisions_of_study(), start=1)
    ]


def blocks_of_study():
    """The blocks that the looks asked for, and what is measured beyond them; all of the plan without looks."""
    wanted = {*needed(PLAN, decisions_of_study()), *MEASURED}
    return [path for path in BLOCKS if path in wanted]


def bundle_files():
    return [
        str(FOLDER.bundle(name) / file)
        for name in bundles.bundles(blocks_of_study())
        for file in bundles.FILES
    ]


def block_of(wildcards):
    return BLOCKS[f"{wildcards.company}/{wildcards.number}"]


def spec_of_block(wildcards):
    """Everything that defines the block, and nothing else: what decides whether it must be measured again."""
    return fingerprint_of(block_of(wildcards).path)


@cache
def fingerprint_of(path):
    """Found once: Snakemake asks again whenever a job ends, and whoever interrupts it there gets a traceback."""
    return without_decision(BLOCKS[path]).fingerprint(16)


def rounds_of_block(wildcards):
    """What decides how many rounds the block has, where its company's first launches do and it is not measured yet."""
    block = block_of(wildcards)
    waits = block.design.decided and block.path not in MEASURED
    return str(FOLDER.rounds_file(block.company.id)) if waits else []


def first_blocks(wildcards):
    """The launches of a company that decide how many rounds its others have; none where it is decided: that stays."""
    if wildcards.company in DECIDED:
        return []
    paths = [f"{wildcards.company}/{number + 1}" for number in range(FIRST_LAUNCHES)]
    return [
        file
        for name in (RECORD, table_file("windows"))
        for file in block_files(name, paths)
    ]


def environments_of_block(wildcards):
    """The environments that a block's members and placebos run in; their path carries their content."""
    company = block_of(wildcards).company
    keys = {("native", company.native_key)}
    keys |= {
        (member.environment, member.environment_key)
        for member in company.members
        if member.environment
    }
    return [
        str(environments.ready_file(environments.place_of(name, key, CACHE)))
        for name, key in sorted(keys)
    ]


def inputs_of_block(wildcards):
    """The data sets that a block's members read; their path carries their content."""
    keys = {
        (member.inputs, member.inputs_key)
        for member in block_of(wildcards).company.members
        if member.inputs
    }
    return [
        str(inputs.ready_file(inputs.place_of(name, key, CACHE)))
        for name, key in sorted(keys)
    ]


def environment_of_inputs(wildcards):
    """The environment that makes a data set, where it is not the framework's own."""
    recipe = inputs.RECIPES.get(wildcards.inputs)
    if recipe is None or recipe.environment is None:
        return []
    key = environments.key(recipe.environment, project.ENVIRONMENTS)
    place = environments.place_of(recipe.environment, key, CACHE)
    return str(environments.ready_file(place))


def isolating_option():
    """The isolating partition for the script, where the study names it."""
    named = PROJECT.study.attribution.isolated
    return f"--isolated {named}" if named else ""


def run_order(wildcards):
    block = block_of(wildcards)
    return schedule.block_priority(block.seed, block.number)


def whole_machine(wildcards):
    """All cores, so that a measured block runs alone; 1 where no number of cores is set (a cluster, a graph)."""
    try:
        return workflow.cores or 1
    except WorkflowError:
        return 1
