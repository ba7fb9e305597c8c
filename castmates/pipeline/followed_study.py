"""Writes the study that traces a command as it was typed, and measures what it loses."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Protocol

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import cache_folder, written_text
from castmates.pipeline.followed_trial import PYTHON, Steps, Wish, try_steps
from castmates.pipeline.own_study import (
    budget_of,
    in_a_line,
    memory_of,
    name_of,
    one_of,
    refuse_unknown,
    scalar,
    variables_of,
)
from castmates.protocols import Say
from castmates.results.named import default_study
from castmates.study.model import Study, Workload
from castmates.study.tracing_keys import ProfileKeys
from castmates.study.trying import option_of
from castmates.workloads import environments
from castmates.workloads.attached.keras import XLA
from castmates.workloads.jaxjobs.shapes import SHAPES as JAX
from castmates.workloads.tfmodels.jobs import SHAPES as TENSORFLOW
from castmates.workloads.torchjobs.shapes import SHAPES as TORCH

LAUNCHES = 4  # launches that measure
READY_WITHIN, SLOWER = 180.0, 4.0  # seconds, or so many times what the trial took
SETS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)  # a word of `env`
WITH_VALUE = ("-W", "-X")  # options of Python that a word of their own follows


@dataclass(frozen=True)
class Followed:
    """What is to be traced, and how."""

    typed: Sequence[str]  # behind --
    beside: Sequence[str]
    step_function: str = ""
    cpus: int = 1
    environment: str = ""
    xla: bool = True
    keys: Mapping[str, int] = field(default_factory=dict)  # of `profile`: those that were given

    @property
    def command(self) -> Sequence[str]:
        """What is started: without `env` and what it sets, which a trial of advice may change."""
        return self.typed[len(self._set) + 1 :] if self._set else self.typed

    @property
    def variables(self) -> dict[str, str]:
        """That the program is started with."""
        return dict(self._set) | ({} if self.xla else {XLA: "off"})

    @property
    def _set(self) -> list[tuple[str, str]]:
        behind = self.typed[1:] if self.typed[0] == "env" else ()
        words = list(takewhile(SETS.match, behind))
        if not (program := behind[len(words) :]) or "=" in program[0] or program[0].startswith("-"):
            return []  # `env` itself knows
        return [(name, value) for name, _, value in (word.partition("=") for word in words)]


def followed_study(traced: Followed, name: str, known: Mapping[str, Workload], say: Say) -> Path:
    """The study that traces a command beside these workloads: the one that was written before, or a new one."""
    refuse_unknown(traced.beside, known, alone=True)

    def text(own: str) -> str:
        say(f"trying {script_of(traced.command)}: it runs until it has made some training steps")
        return text_of(own, traced, try_steps(_wish(traced), cache_folder(), say), known)

    file = one_of(name_of([name or script_of(traced.command)]), lambda study: _traces(study, traced), text)
    _refuse_other_keys(file, traced)
    return file


def script_of(command: Sequence[str]) -> str:
    """What a command is about: the script or module that Python runs, or the program."""
    for place, word in enumerate(command):
        if PYTHON.fullmatch(Path(word).name):
            behind = command[place + 1 :]
            values = {number + 1 for number, each in enumerate(behind) if each in WITH_VALUE}
            rest = [n for n, each in enumerate(behind) if not each.startswith("-") and n not in values]
            if "-c" in behind[:1] or not rest:
                break
            first = behind[rest[0]]
            return first.rpartition(".")[2] if behind[rest[0] - 1 :][0] == "-m" else Path(first).stem
    return command[0]


def text_of(name: str, traced: Followed, steps: Steps, known: Mapping[str, Workload]) -> str:
    """The study as YAML."""
    workload = f"{name}-own" if name in known else name
    seen = ", ".join(f"{framework} {version}" for framework, version in steps.versions.items())
    lines = [
        "# Written by `castmates profile`; change it as you like, and go on with `castmates sweep`.",
        f"name: {scalar(name)}",
        f"title: {scalar(_title(name, traced.beside))}",
        "workloads:",
        f"  {scalar(workload)}:",
        f"    command: {in_a_line(traced.command)}",
        f"    attach: {steps.framework} # {seen}",
        *([f"    step_function: {scalar(traced.step_function)}"] if traced.step_function else []),
        f"    progress: heartbeat # one step took {1000 * steps.seconds:.3g} ms",
        *([f"    environment: {scalar(traced.environment)}"] if traced.environment else []),
        *variables_of(traced.variables),
        f"    cores: {traced.cpus}",
        f"    memory: {memory_of(steps)}",
        f"    ready_within: {max(READY_WITHIN, SLOWER * steps.start):.0f} # it took {steps.start:.0f} s",
        f"leads: {in_a_line([workload])}",
        f"antagonists: {in_a_line(traced.beside)}",
        *budget_of(steps.seconds, LAUNCHES),
        "profile:",
        *[f"  {key}: {number}" for key, number in _all_keys(traced).items()],
    ]
    return "\n".join(lines) + "\n"


def _title(name: str, beside: Sequence[str]) -> str:
    if not beside:
        return f"What takes the time of {name}"
    return f"Which operations of {name} lose beside {' and '.join(beside)}"


def _all_keys(traced: Followed) -> dict[str, int]:
    usual = ProfileKeys()
    return {"steps": usual.steps, "times": usual.times, "launches": usual.launches} | dict(traced.keys)


def _wish(traced: Followed) -> Wish:
    prefix: Mapping[str, str] = {}
    if traced.environment:
        place = environments.build(traced.environment, shipped.environments(), cache_folder())
        prefix = environments.environment_of(place)
    return Wish(traced.command, script_of(traced.command), traced.step_function, traced.cpus, traced.variables, prefix)


def _traces(study: Study, traced: Followed) -> bool:
    """Whether a study that is there traces just this."""
    if study.profile is None or study.antagonists != list(traced.beside) or len(study.workloads) != 1:
        return False
    (workload,) = study.workloads.values()
    wanted = (list(traced.command), traced.step_function, traced.cpus, traced.environment, traced.variables)
    there = (workload.words, workload.step_function, workload.cores, workload.environment or "", workload.variables)
    return workload.attach is not None and wanted == there


def _refuse_other_keys(file: Path, traced: Followed) -> None:
    """Refuse to trace otherwise than a study does that is there already: what it says is the user's."""
    from castmates.study.reading import read_keys

    keys = read_keys(Study, written_text(file, "the study"), str(file)).profile
    for key, number in traced.keys.items():
        if (there := getattr(keys, key)) != number:
            raise CastmatesError(
                f"{file} has 'profile.{key}: {there}' and not {number}: change it there, or give another --name."
            )


# Which file a study is read from, as Snakemake's options name it, or a workflow that uses ours as a module.

ONLY, ONLY_TRACES = "only", "traces"  # nothing is measured, and the page is made of what is there
KEYS = ("study", "launches", ONLY)  # of Snakemake's --config


class Options(Protocol):
    """What Snakemake's command line sets in the configuration."""

    config: Mapping[str, object]
    configfiles: Sequence[Path]


def study_of(config: Mapping[str, object], options: Options, written: Sequence[Path | str] = ()) -> Path:
    """The study of a sweep: `config` as the rules see it, and the files that `configfile:` named beside the options'.

    A file given by --configfile, or by `configfile:` where our workflow is a module, is the study itself.
    """
    if options.configfiles:
        return chosen_study(options.config, options.configfiles)
    if not (keys := set(config) - {*KEYS}) or not written:
        return chosen_study(config)
    file = chosen_study(options.config, [Path(each) for each in written])
    if changed := sorted(key for key in keys | set(_content(file)) if config.get(key) != _content(file).get(key)):
        raise CastmatesError(
            f"the workflow changed '{changed[0]}' of the configuration that it read from {file}: a study is its file, "
            "so change the key there."
        )
    return file


def chosen_study(config: Mapping[str, object], files: Sequence[Path] = ()) -> Path:
    """The study named by Snakemake's `--config study=FILE` or `--configfile FILE`, or the default one."""
    if strange := sorted(set(config) - set(KEYS)):
        raise CastmatesError(
            f"'{strange[0]}' is not understood here: choose a study with --config study=FILE or --configfile FILE, "
            "and change its keys in that file; --config launches=N asks for more launches."
        )
    if (only := config.get(ONLY, ONLY_TRACES)) != ONLY_TRACES:
        raise CastmatesError(f"--config {ONLY}={only} is not understood: {ONLY}={ONLY_TRACES} measures no losses.")
    named = [*map(str, files), *([str(config["study"])] if "study" in config else [])]
    if len(named) > 1:
        raise CastmatesError(
            f"one study at a time, not {' and '.join(map(os.path.relpath, named))}: choose it with --config "
            "study=FILE or with --configfile FILE."
        )
    return Path(os.path.relpath(named[0] if named else default_study()))


def _content(file: Path) -> Mapping[str, object]:
    from snakemake.common.configfile import load_configfile

    content: Mapping[str, object] = load_configfile(str(file))
    return content


# What our own jobs take for options that a workload does not set.

Word = str | bool | int | float
BATCHES = {
    "castmates.workloads.tfmodels": {key: shape.batch for key, shape in TENSORFLOW.items()},
    "castmates.workloads.torchjobs": {key: shape.batch for key, shape in TORCH.items()},
    "castmates.workloads.jaxjobs": {key: shape.batch for key, shape in JAX.items()},
}
INTER, INTRA = "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"  # as many threads as CPUs where they are not set
OF_TENSORFLOW: dict[str, Word] = {"onednn": "on", "precision": "float32", "xla": False}


def usual_options(command: Sequence[str], cpus: int) -> dict[str, Word]:
    """The options of a job of ours and their usual values; of other programs, the variables that TensorFlow reads."""
    program = next((word for word in command if word in BATCHES), "")
    if not program:
        return dict.fromkeys((INTER, INTRA), cpus)
    batch = BATCHES[program].get((option_of(command, "model") or "", option_of(command, "size") or "tiny"))
    is_tensorflow = program == "castmates.workloads.tfmodels"
    source = ("records" if option_of(command, "data") else "memory") if is_tensorflow else "pipeline"
    threads: Word = option_of(command, "threads") or cpus
    of_tensorflow = OF_TENSORFLOW | {"inter-threads": threads} if is_tensorflow else {}
    known: dict[str, Word] = {"threads": cpus, "source": source, **of_tensorflow}
    return known | ({} if batch is None else {"batch": batch})
