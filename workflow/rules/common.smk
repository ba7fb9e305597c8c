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
    from castmates.errors import CastmatesError
except ModuleNotFoundError as problem:
    if problem.name != "castmates":
        raise
    raise WorkflowError(
        "castmates is not installed for the Python that runs Snakemake: install the wheel, or run the workflow of a clone."
    ) from None
from castmates import extras


def refuse_lacking(*wanted):
    """Say what is not installed before anything is launched; jobs may have environments of their own (--sdm conda)."""
    if not workflow.deployment_settings.deployment_method:
        try:
            extras.refuse_lacking(*wanted)
        except CastmatesError as problem:
            sys.exit(f"castmates: {problem}")


refuse_lacking(extras.SWEEP)

from castmates import shipped
from castmates.english import printable
from castmates.files import cache_folder
from castmates.pipeline.followed_study import ONLY, study_of
from castmates.pipeline.planned_sweep import let_jobs_find_us, use_cache
from castmates.results import bundle_names, confirming, trials
from castmates.results.columns.launch import RECORD
from castmates.results.columns.operations import PROFILE_RECORD
from castmates.results.columns.registry import written_by
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.traces import traces_there
from castmates.workloads import environments, inputs

let_jobs_find_us()

# An executor has started this as a job on another node: it reads what the process that plans has left, which takes
# milliseconds, and neither plans nor reads the study. Everything below is the same for both.
IS_JOB = workflow.remote_exec

# A file given by --configfile, or by `configfile:` where we are a module, is the study itself: `config` has its keys then.
try:
    study_file = study_of(config, workflow.config_settings, workflow.configfiles)
    if IS_JOB:
        from castmates.results.for_jobs import written_sweep

        SWEEP = written_sweep(study_file)
        use_cache(SWEEP.terms.cache)
    else:
        from castmates.pipeline.planned_sweep import PlannedSweep
        from castmates.report.figures.index import figures_of

        SWEEP = PlannedSweep.of(
            study_file, config.get("launches"), cache_folder(), figures_of
        )
except CastmatesError as problem:
    # A WorkflowError would come with a traceback.
    sys.exit(printable(f"castmates: {problem}"))
except KeyboardInterrupt:
    sys.exit("castmates: ended before anything was begun.")

TERMS = SWEEP.terms
STUDY = TERMS.study
FOLDER = TERMS.folder
CACHE = Path(TERMS.cache)
if TERMS.profiles or TERMS.traces or traces_there(FOLDER):
    refuse_lacking(extras.TRACE)


wildcard_constraints:
    study=STUDY,
    look=r"\d+",
    cohort="[^/]+",
    number=r"\d+",
    bundle=r"\d+",
    trace="[^/]+",


if not IS_JOB:
    from castmates.terminal.display import Display

    # Our logger plugin, where profiles/default has chosen it, shows the sweep with this; other loggers do without.
    logger.info(
        "",
        extra={
            "castmates_display": partial(
                Display, SWEEP.project, SWEEP.plan, lambda: whole_machine()
            )
        },
    )


# Jobs on other nodes have no such hooks.
onstart:
    from castmates.pipeline.snakemake import begin

    try:
        begin(SWEEP, config, has_jobs_elsewhere())
    except CastmatesError as problem:
        sys.exit(printable(f"castmates: {problem}"))


onsuccess:
    from castmates.pipeline.snakemake import closing_text

    logger.info(
        closing_text(SWEEP.project, SWEEP.plan), extra={"castmates_ending": True}
    )


onerror:
    from castmates.pipeline import failures

    logger.error(
        f"{failures.reasons(Path('logs'))}The sweep did not finish; the same command goes on where it stopped.",
        extra={"castmates_ending": False},
    )


def has_jobs_elsewhere():
    """Whether an executor starts jobs on other nodes; none is there yet for a graph."""
    executor = None if IS_JOB else workflow.executor_plugin
    return executor is not None and not executor.common_settings.local_exec


def mix_files():
    return [str(FOLDER.mix_file(name)) for name in TERMS.mixes]


def launch_files(name, paths):
    return [str(FOLDER.launch(path) / name) for path in paths]


def profile_files():
    """The records of the launches in which leads are traced."""
    return [str(FOLDER.profile(path) / PROFILE_RECORD) for path in TERMS.profiles]


def trace_files():
    """The records of the traces that each sweep makes."""
    return [str(FOLDER.trace(name) / TRACE_RECORD) for name in TERMS.traces]


def own_rules():
    """The study's own files of rules on findings, which the page follows; a job on another node needs none of them."""
    if IS_JOB:
        return []
    from castmates.results.finding_rules import own_files

    return list(map(str, own_files(SWEEP.project.study, SWEEP.project.study_file)))


def tables_of(rule):
    """Of the tables that a rule writes those that the study asks for; all where it has nothing to do."""
    return list(written_by(rule, TERMS.tables) or written_by(rule))


def made_by(rule):
    """What a rule makes of the tables that the study asks for."""
    return getattr(rules, rule).output if written_by(rule, TERMS.tables) else []


def traces_on_demand():
    """Traces that no sweep makes, and when each was made: after another one the tables of traces are made anew."""
    names = [name for name in traces_there(FOLDER) if name not in TERMS.traces]
    return [
        f"{name} {(FOLDER.trace(name) / TRACE_RECORD).stat().st_mtime_ns}"
        for name in names
    ]


def terms_of_profile(wildcards):
    return SWEEP.launch(path_of_launch("profiles/", wildcards))


def terms_of_trace(wildcards):
    return SWEEP.launch(path_of_launch("traces/", wildcards))


def planned_before(of=""):
    """The plan and the facts of the machine, which are there before a launch; `of`: profiles/, traces/ or ""."""
    if FOLDER.plan_file.exists() and FOLDER.machine_file.exists():
        # Snakemake would ask a function for every launch.
        return ancient(["results/{study}/plan.json", "results/{study}/machine.json"])
    files = [str(FOLDER.plan_file), str(FOLDER.machine_file)]
    return ancient(
        lambda wildcards: SWEEP.waits_for(path_of_launch(of, wildcards), files)
    )


def environments_of(of=""):
    """The environments that a launch's members and placebos run in; their path carries their content."""
    return ancient(lambda wildcards: waited_for(of, wildcards, "environments"))


def inputs_of(of=""):
    """The data sets that a launch's members read; their path carries their content."""
    return ancient(lambda wildcards: waited_for(of, wildcards, "inputs"))


def waited_for(of, wildcards, what):
    path = path_of_launch(of, wildcards)
    return SWEEP.waits_for(path, getattr(SWEEP.launch(path), what))


def path_of_launch(of, wildcards):
    """Where a launch lies: of a cohort by its number, but a trace by its name."""
    number = f"{wildcards.cohort}/{wildcards.number}" if of != "traces/" else None
    return f"{of}{number or wildcards.trace}"


def decision_of_look(number):
    """The cohorts that went on after a look; Snakemake comes back when the look was taken."""
    from castmates.results.looks import went_on

    taken = checkpoints.take_look.get(study=STUDY, look=number)
    return went_on(Path(taken.output[0]))


def launches_of_look(wildcards):
    """The launches that have to be measured before this look."""
    earlier = range(1, int(wildcards.look))
    return SWEEP.needed([decision_of_look(number) for number in earlier])


def earlier_looks(wildcards):
    earlier = range(1, int(wildcards.look))
    return [FOLDER.look_file(number) for number in earlier]


def wanted_of_looks():
    """What looks judge by, for the script; a precision as a number, since with any other value old looks run again."""
    if not TERMS.adaptive:
        return TERMS.precision
    limit = f" --lead-loss {TERMS.lead_loss}" if TERMS.lead_loss else ""
    return f"adaptive --margin {TERMS.margin}{limit}"


def decisions_of_study():
    """The cohorts that went on after each look, up to the last one; none without looks."""
    decisions = []
    for number in range(1, 0 if ONLY in config else len(SWEEP.plan.looks) + 1):
        decisions.append(decision_of_look(number))
        if not decisions[-1]:
            break
    return decisions


def looks_of_study():
    if IS_JOB:
        return SWEEP.looks
    return [
        FOLDER.look_file(number)
        for number, _ in enumerate(decisions_of_study(), start=1)
    ]


def launches_of_study():
    """The launches that the looks asked for, and what is measured beyond them; all of the plan without looks.

    None where steps are only traced.
    """
    if IS_JOB:
        return SWEEP.launches
    from castmates.pipeline.snakemake import refuse_to_forget

    refuse_to_forget(workflow.rerun_triggers)
    return () if ONLY in config else SWEEP.found(decisions_of_study())


bundles_of = cache(bundle_names.bundles)


def missing_launches():
    """The launches of bundles that are there which were not measured when the sweep began."""
    if IS_JOB:
        return []
    gathered = [
        paths
        for name, paths in bundles_of(launches_of_study()).items()
        if (FOLDER.bundle(name) / bundle_names.LIST).exists()
    ]
    return SWEEP.missing(path for paths in gathered for path in paths)


def bundle_files():
    return [
        str(FOLDER.bundle(name) / file)
        for name in bundles_of(launches_of_study())
        for file in bundle_names.FILES
    ]


def terms_of_launch(wildcards):
    return SWEEP.launch(f"{wildcards.cohort}/{wildcards.number}")


def spec_of_launch(wildcards):
    """Exactly what defines the launch: this decides whether it must be measured again."""
    return terms_of_launch(wildcards).spec


def again(wildcards):
    """What has a launch measured again that has lost a table since: a note of that, newer than its record."""
    path = f"{wildcards.cohort}/{wildcards.number}"
    return SWEEP.torn_note if path in SWEEP.torn else []


def rounds_of_launch(wildcards):
    """What decides how many rounds the launch has, where its cohort's first launches do and it is not measured yet."""
    waits = terms_of_launch(wildcards).waits
    return str(FOLDER.rounds_file(wildcards.cohort)) if waits else []


def first_launches(wildcards):
    """The launches of a cohort that decide how many rounds its others have; none where it is decided: that stays."""
    return launch_files(RECORD, SWEEP.first_launches(wildcards.cohort))


def environment_of_inputs(wildcards):
    """The environment that makes a data set, where it is not the framework's own."""
    recipe = inputs.RECIPES.get(wildcards.inputs)
    if recipe is None or recipe.environment is None:
        return []
    key = environments.key(recipe.environment, shipped.environments())
    place = environments.place_of(recipe.environment, key, CACHE)
    return str(environments.ready_file(place))


def caption_of(figure):
    """What `snakemake --report` shows below a figure, which is made from the study's numbers with it.

    None in a module from a repository elsewhere: Snakemake would look for it there.
    """
    file = FOLDER.figures / f"{figure}.rst"
    return str(file.resolve()) if clone.is_dir() else None


def slurm_resources(of=""):
    """What a launch asks of Slurm, which other executors leave alone; a job has its node. `of`: profiles/, traces/ or ""."""
    if IS_JOB:
        return {}
    chosen = {
        "slurm_extra": lambda wildcards, attempt: slurm_options(of, wildcards, attempt)
    }
    if any(machine.slurm.constraint for machine in SWEEP.classes):
        chosen["constraint"] = lambda wildcards: slurm_keys(of, wildcards).constraint
    if any(machine.slurm.partition for machine in SWEEP.classes):
        chosen["slurm_partition"] = lambda wildcards: slurm_keys(
            of, wildcards
        ).partition
    return chosen


def slurm_keys(of, wildcards):
    """How Slurm finds a node for a launch, by its class and by the profile."""
    from castmates.pipeline.planned_sweep import in_effect

    settings = workflow.resource_settings
    rule_of = {"profiles/": "profile_launch", "traces/": "trace_launch"}
    of_launches = settings.overwrite_resources.get(
        rule_of.get(of, "measure_launch"), {}
    )
    of_class = SWEEP.slurm_keys(path_of_launch(of, wildcards))
    return in_effect(of_class, of_launches, settings.default_resources or {})


def slurm_options(of, wildcards, attempt):
    """What else a launch asks of Slurm; sbatch would not see nodes that the plugin leaves out, since ours come later."""
    left_out = getattr(workflow.executor_settings, "exclude_failed_nodes", None) or ""
    return SWEEP.slurm_options(
        path_of_launch(of, wildcards),
        attempt,
        slurm_keys(of, wildcards),
        [node.strip() for node in left_out.split(",") if node.strip()],
    )


def run_order(wildcards):
    return terms_of_launch(wildcards).priority


def whole_machine(wildcards=None):
    """All cores, so that a measured launch runs alone; 1 where the cores are those of a node, which finds them itself."""
    try:
        return 1 if has_jobs_elsewhere() else workflow.cores or 1
    except WorkflowError:  # none are set, as for a graph
        return 1
