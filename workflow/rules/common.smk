import sys
from functools import cache, partial
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

# A clone runs without being installed. As a module from a repository elsewhere, the workflow takes the installed package.
clone = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
if (clone / "castmates").is_dir():
    sys.path.insert(0, str(clone))
try:
    from castmates import plugins, project
except ModuleNotFoundError as problem:
    if problem.name != "castmates":
        raise
    raise WorkflowError(
        "castmates is not installed for the Python that runs Snakemake: install the wheel, or run the workflow of a clone."
    ) from None
from castmates.errors import CastmatesError
from castmates.english import printable
from castmates.files import cache_folder
from castmates.machine import trial_records
from castmates.pipeline import failures
from castmates.pipeline.chosen_study import study_of
from castmates.pipeline.closing import closing_text
from castmates.pipeline.jobs import let_jobs_find_us
from castmates.pipeline.keeping import refuse_to_forget
from castmates.pipeline.lock import hold_sweep_lock
from castmates.report.figures.index import figure_names
from castmates.results import bundles, confirming, looks
from castmates.results.asked import remember_blocks
from castmates.results.columns.block import RECORD
from castmates.results.columns.partitions import PARTITION_TABLES
from castmates.results.columns.study import STUDY_TABLES
from castmates.results.rounds import decided_rounds
from castmates.results.torn import remember_torn, torn_blocks
from castmates.study import schedule
from castmates.study.decisions import without_decisions
from castmates.study.fingerprints import Fingerprints
from castmates.study.looks import needed
from castmates.study.rounds import FIRST_LAUNCHES
from castmates.study.spec import PROTOCOL
from castmates.terminal.display import Display
from castmates.workloads import environments, inputs

let_jobs_find_us()

# A file given by --configfile, or by `configfile:` where we are a module, is the study itself: `config` has its keys then.
try:
    plugins.refuse_broken()
    PROJECT = project.load(
        study_of(config, workflow.config_settings, workflow.configfiles),
        config.get("blocks"),
    )
    PLAN = PROJECT.plan()
    FIGURES = figure_names(
        PROJECT.study,
        partitioned=any(mix.partitions for mix in PLAN.mixes),
        phases=any(block.company.lead.phases for block in PLAN.blocks),
        watched=PLAN.cache is not None and bool(PLAN.cache.events),
    )
except CastmatesError as problem:
    # A WorkflowError would come with a traceback.
    sys.exit(printable(f"castmates: {problem}"))
except KeyboardInterrupt:
    sys.exit("castmates: ended before anything was begun.")

STUDY = PROJECT.study.name
FOLDER = PROJECT.results
CACHE = cache_folder()
BLOCKS = {block.path: block for block in PLAN.blocks}
MEASURED = frozenset(block.path for block in FOLDER.measured(PLAN).blocks)
TORN = torn_blocks(FOLDER, MEASURED)
FINGERPRINTS = Fingerprints()
UNDECIDED_ROUNDS = any(block.design.decided for block in PLAN.blocks)
# What has to be the same for a block to count as measured.
UNDECIDED = {block.path: block for block in without_decisions(PLAN).blocks}
DECIDED = decided_rounds(FOLDER)
MIXES = {mix.name: mix for mix in PLAN.mixes}


wildcard_constraints:
    study=STUDY,
    look=r"\d+",
    company="[^/]+",
    number=r"\d+",
    bundle=r"\d+",


# Our logger plugin, where profiles/default has chosen it, shows the sweep with this; other loggers do without.
logger.info(
    "",
    extra={
        "castmates_display": partial(Display, PROJECT, PLAN, lambda: whole_machine())
    },
)


onstart:
    try:
        hold_sweep_lock(FOLDER)
    except CastmatesError as problem:
        sys.exit(printable(f"castmates: {problem}"))
    if "blocks" in config:
        remember_blocks(FOLDER, PROJECT.study.budget.blocks)


onsuccess:
    logger.info(closing_text(PROJECT, PLAN), extra={"castmates_ending": True})


onerror:
    logger.error(
        f"{failures.reasons(Path('logs'))}The sweep did not finish; the same command goes on where it stopped.",
        extra={"castmates_ending": False},
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
    """The companies that went on after each look, up to the last one; none without looks."""
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
    refuse_to_forget(workflow.rerun_triggers)
    return blocks_after(tuple(map(frozenset, decisions_of_study())))


@cache
def blocks_after(decisions):
    """Found once for all rules that ask: there may be tens of thousands."""
    wanted = {*needed(PLAN, decisions), *MEASURED}
    return tuple(path for path in BLOCKS if path in wanted)


bundles_of = cache(bundles.bundles)


def bundle_files():
    return [
        str(FOLDER.bundle(name) / file)
        for name in bundles_of(blocks_of_study())
        for file in bundles.FILES
    ]


def block_of(wildcards):
    return BLOCKS[f"{wildcards.company}/{wildcards.number}"]


def spec_of_block(wildcards):
    """Exactly what defines the block: this decides whether it must be measured again."""
    return fingerprint_of(block_of(wildcards).path)


@cache
def fingerprint_of(path):
    """Found once: Snakemake asks again whenever a job ends, and an interrupt there causes a traceback."""
    return FINGERPRINTS.of_block(UNDECIDED[path])


def again(wildcards):
    """What has a block measured again that has lost a table since: a note of that, newer than its record."""
    return torn_note() if block_of(wildcards).path in TORN else []


@cache
def torn_note():
    return str(remember_torn(FOLDER, TORN))


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
    return block_files(RECORD, paths)


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


def caption_of(figure):
    """What `snakemake --report` shows below a figure, which is made from the study's numbers with it.

    None in a module from a repository elsewhere: Snakemake would look for it there.
    """
    file = FOLDER.figures / f"{figure}.rst"
    return str(file.resolve()) if clone.is_dir() else None


def run_order(wildcards):
    block = block_of(wildcards)
    return schedule.block_priority(block.seed, block.number)


def whole_machine(wildcards=None):
    """All cores, so that a measured block runs alone; 1 where no number of cores is set (a cluster, a graph)."""
    try:
        return workflow.cores or 1
    except WorkflowError:
        return 1
