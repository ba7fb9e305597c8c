"""The workloads a study may name: files put together, `like` followed, defaults filled in."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.study.last_level import NATIVE
from castmates.study.mitigations import wanted_mixes
from castmates.study.mix_keys import MixSets
from castmates.study.model import Catalogue, Study, Workload
from castmates.study.progress_keys import MAKES_NO_STEPS, UNITS
from castmates.study.reading import did_you_mean
from castmates.study.remarks import MIXES, Remark

Workloads = Mapping[str, Workload]
Files = list[tuple[str, Catalogue]]
# Keys that hold for one command alone.
OF_THE_PROGRAM = ("options", "package", "phases", "requests", "tags", "frozen_between_steps", "attach", "step_function")
OURS = "castmates.workloads."
TORCH = f"{OURS}torchjobs"
INPUTS = "{inputs}"  # in a command: the folder of its data set
NO_PROGRAM: dict[str, object] = {
    "command": "",
    "options": {},
    "environment": None,
    "package": None,
    "inputs": None,
    "variables": {},
    "progress": "heartbeat",
    "step_line": "",
    "ready_line": "",
    "attach": None,
    "step_function": "",
}


def gather_catalogue(
    files: Iterable[tuple[str, Catalogue]],
    study: Study,
    study_file: str,
    environments: Collection[str],
    inputs: Collection[str] = (),
) -> dict[str, Workload]:
    """Put all catalogue files and the study's own workloads together, each finished."""
    written: dict[str, Workload] = {}
    origin: dict[str, str] = {}
    for file, entries in [*((name, catalogue.workloads) for name, catalogue in files), (study_file, study.workloads)]:
        for name, workload in entries.items():
            if name in written:
                raise CastmatesError(
                    f"{file}: the workload '{name}' is also in {origin[name]}; names must be unique, so rename one."
                )
            written[name], origin[name] = workload, file
    finished = {name: _finish(name, written, origin) for name in written}
    for name, workload in finished.items():
        if workload.environment is not None and workload.environment not in environments:
            raise CastmatesError(
                f"{origin[name]}: the workload '{name}' needs the environment '{workload.environment}', but there is "
                f"only {', '.join(sorted(environments))}; add envs/{workload.environment}.lock."
            )
        if why := _does_not_fit(workload, inputs):
            raise CastmatesError(f"{origin[name]}: the workload '{name}' {why}.")
    return finished


def stacked(folders: Iterable[Files]) -> tuple[Files, tuple[Remark, ...]]:
    """The files of several folders, where the first that defines a workload wins, and a remark on what it replaces."""
    files: Files = []
    remarks: list[Remark] = []
    for later in folders:
        there = {name for _, catalogue in later for name in catalogue.workloads}
        for file, before in files:
            if names := sorted(there & set(before.workloads)):
                text = f"{file} replaces {listed(names)} of the catalogue that ships with Castmates."
                remarks.append(Remark(about=MIXES, text=text))
        hidden = {name for _, before in files for name in before.workloads}
        files += [(file, _without(catalogue, hidden)) for file, catalogue in later]
    return files, tuple(remarks)


def _without(catalogue: Catalogue, names: Collection[str]) -> Catalogue:
    kept = {name: workload for name, workload in catalogue.workloads.items() if name not in names}
    return catalogue.model_copy(update={"workloads": kept})


def _does_not_fit(workload: Workload, inputs: Collection[str]) -> str:
    """Why its keys contradict each other; "" where they do not."""
    named = any(INPUTS in word for word in (*workload.words, *workload.variables.values()))
    if named and workload.inputs is None:
        return f"uses {INPUTS} but has no 'inputs'; name the data set that is meant"
    if workload.inputs is not None and workload.inputs not in inputs:
        meant, known = did_you_mean(workload.inputs, inputs), ", ".join(sorted(inputs)) or "none"
        return f"has 'inputs: {workload.inputs}', but there is no such data set{meant} (there are: {known})"
    if workload.way == "output" and not workload.step_line:
        return "has 'progress: output' but no 'step_line'; give the regular expression of a line that is a step"
    if workload.way != "output" and (workload.step_line or workload.ready_line):
        return f"has a 'step_line' or 'ready_line', but its progress is '{workload.way}'; make it 'output'"
    if workload.requests and workload.way != "heartbeat":
        return f"has 'requests: true', but its progress is '{workload.way}'; make it 'heartbeat'"
    if not workload.requests and _takes_requests(workload.words):
        return "answers requests that arrive by a schedule ('load'), whose rate says nothing; add 'requests: true'"
    if workload.frozen_between_steps and workload.way in MAKES_NO_STEPS:
        return f"has 'frozen_between_steps: true', but with 'progress: {workload.way}' makes no steps; take the key out"
    if workload.attach and workload.way != "heartbeat":
        return f"has 'attach: {workload.attach}', but its progress is '{workload.way}'; make it 'heartbeat'"
    if workload.step_function and not workload.attach:
        return (
            "has a 'step_function' but no 'attach'; add 'attach: tensorflow' or 'attach: jax' "
            "(castmates help profile-a-program)"
        )
    if workload.step_function and workload.attach == "torch":
        return "has a 'step_function', but with 'attach: torch' a step is one of the first optimizer; take the key out"
    on_gpu = TORCH in workload.words and workload.options.get("device") == "gpu"
    if on_gpu and not workload.frozen_between_steps:
        return (
            "has 'options.device: gpu', so it would be frozen with work queued there; add 'frozen_between_steps: true' "
            "(castmates help gpu)"
        )
    return misread(workload)


def _takes_requests(words: Collection[str]) -> bool:
    """Whether one of our programs works at the pace at which requests arrive, and not at its own."""
    is_ours = SERVICE in words or any(word.startswith(OURS) for word in words)
    return is_ours and any(word.partition("=")[0] == "--load" for word in words)


def _finish(name: str, written: Workloads, origin: Mapping[str, str]) -> Workload:
    chain = _chain(name, written, origin)
    keys: dict[str, Any] = {}
    for ancestor in reversed(chain):
        own = {key: value for key, value in written[ancestor].model_dump(exclude_unset=True).items() if key != "like"}
        if "command" in own:  # another program: what was written for the one before does not hold for it
            keys = {key: value for key, value in keys.items() if key not in OF_THE_PROGRAM}
        options = {**keys.get("options", {}), **own.get("options", {})}
        keys |= own | ({"options": options} if options else {})
    whole = Workload.model_validate(keys)
    if not whole.command and whole.model is None:
        raise CastmatesError(
            f"{origin[name]}: the workload '{name}' has no 'command'; give it one, or 'like: ANOTHER'."
        )
    unit = whole.unit or UNITS.get(whole.way, "step")
    return whole.model_copy(update={"title": keys.get("title") or name, "unit": unit})


def _chain(name: str, written: Workloads, origin: Mapping[str, str]) -> list[str]:
    chain = [name]
    while (parent := written[chain[-1]].like) is not None:
        if parent in chain:
            circle = " -> ".join([*chain, parent])
            raise CastmatesError(f"{origin[name]}: 'like' goes round in a circle: {circle}; remove one of them.")
        if parent not in written:
            raise CastmatesError(
                f"{origin[chain[-1]]}: the workload '{chain[-1]}' is like '{parent}', which is not in the "
                f"catalogue{did_you_mean(parent, written)}."
            )
        chain.append(parent)
    return chain


def check_names(study: Study, workloads: Workloads, study_file: str) -> None:
    """Refuse a study that names a workload that there is not, a name twice, or no mix at all."""
    places = [("leads", study.leads), ("antagonists", study.antagonists)]
    for key, names in places:
        for name in names:
            if names.count(name) > 1:
                raise CastmatesError(f"{study_file}: '{name}' is listed twice in '{key}'; remove one.")
    if study.predict is not None:
        places += [(f"predict.{key}", names) for key, names in study.predict.named.items()]
    for place, rule in study.mix_rules:
        places += [(f"{place}.lead", [rule.lead]), (f"{place}.antagonists", rule.antagonists)]
    places += [(f"controls.{kind}", [rule.lead, *rule.antagonists]) for kind, rule in study.control_rules]
    places.append(("place.jobs", list(study.place.jobs)))
    for key, names in places:
        for name in names:
            if name not in workloads:
                raise CastmatesError(
                    f"{study_file}: '{name}' in '{key}' is not in the catalogue{did_you_mean(name, workloads)} "
                    "(`castmates workloads` lists what there is)."
                )
    _check_predicted(study, workloads, study_file)
    sets = isinstance(study.mixes, MixSets)  # these make mixes, of names that are checked then
    made = study.mix_rules or study.predict or sets
    only_beside = study.cache.sweeps or "off" in study.cache.prefetchers
    if not made and not (study.leads and (study.antagonists or study.asks_alone or not only_beside)):
        tried = "'antagonists', beside which 'cache.sweeps' and 'cache.prefetchers' are tried"
        needed = tried if study.leads else "'leads' and 'antagonists'"
        raise CastmatesError(f"{study_file}: nothing to measure: give {needed}, or 'mixes'.")


def _check_predicted(study: Study, workloads: Workloads, study_file: str) -> None:
    """Refuse to predict what a service loses: it is judged by the latency of its requests."""
    if study.predict is None:
        return
    for key, names in (("leads", study.predict.leads), ("reporters", study.predict.reporters)):
        for name in names:
            if workloads[name].requests:
                raise CastmatesError(
                    f"{study_file}: '{name}' in 'predict.{key}' is an open-loop service, which loses latency and no "
                    "rate, and only losses of the rate are predicted; it can only be one of 'predict.antagonists'."
                )


def check_latency(study: Study, workloads: Workloads, place: str) -> None:
    """Refuse a limit on the latency of requests where no lead answers any."""
    leads = [*study.leads, *(each.lead for each in wanted_mixes(study))]
    if study.recommend.latency and not any(workloads[name].requests for name in leads):
        raise CastmatesError(
            f"{place}: 'recommend.latency' is a limit for open-loop services, but no lead is one; add a lead such as "
            "memcached-5k (castmates help services), or take the key out."
        )


def as_played(study: Study, workloads: Workloads, study_file: str) -> dict[str, Workload]:
    """The workloads as this study's platform needs them: programs to start, or models of them and no program."""
    if study.platform == "modelled":
        played = {name: workload.model_copy(update=NO_PROGRAM) for name, workload in workloads.items()}
        lacking = [name for name in _named(study) if workloads[name].model is None]
        what = "has no 'model', which a study with 'platform: modelled' needs"
    else:
        played = {name: workload.model_copy(update={"model": None}) for name, workload in workloads.items()}
        lacking = [name for name in _named(study) if not workloads[name].command]
        what = "has a 'model' but no 'command'; give it one, or make the study 'platform: modelled'"
    if lacking:
        able = sorted(name for name, workload in workloads.items() if workload.model is not None)
        known = f" (these have one: {', '.join(able)})" if study.platform == "modelled" and able else ""
        raise CastmatesError(f"{study_file}: the workload '{lacking[0]}' {what}{known}.")
    return played


def _named(study: Study) -> list[str]:
    rules = [rule for _, rule in (*study.mix_rules, *study.control_rules)]
    of_rules = [name for rule in rules for name in (rule.lead, *rule.antagonists)]
    predicted = [] if study.predict is None else [name for names in study.predict.named.values() for name in names]
    return list(dict.fromkeys([*study.leads, *study.antagonists, *of_rules, *study.place.jobs, *predicted]))


# What our own programs take as options, so that a slip is found when a study is read, not when it is started.

NUMBER = r"\d+(?:\.\d+)?"
WRITES = (r"0|(?:\d{1,2}|100)%", "a share from 0% to 100%, such as 20%")
EXPECTED = {
    "writes": WRITES,
    "bytes": (
        rf"0*[1-9]\d*[KMG]?|(?=.*[1-9]){NUMBER}(?:llc|ways?|l[1-9])",
        "a size such as 64M, or in shares of a cache such as 0.5llc, 2ways or 2l2",
    ),
    "rate": (
        rf"(?=.*[1-9]){NUMBER}[KMG]?(?:B/s)?|(?=.*[1-9])(?:100(?:\.0+)?|\d{{1,2}}(?:\.\d+)?)%",
        "a rate such as 5GB/s, 20M (units a second) or 60% (of this machine's peak, 100% at most)",
    ),
}
SERVICE = "openloop"
COUNT = (r"[1-9]\d*[KMG]?", "a whole number from 1 on")
EXPECTED_OF_SERVICE = {
    "server": ("memcached|redis|nginx", "memcached, redis or nginx"),
    "load": (rf"(?=.*[1-9]){NUMBER}[KM]?", "a number of requests a second, such as 20000 or 20K"),
    "connections": (r"[1-9]\d?|1\d\d|2[0-4]\d|25[0-6]", "a whole number from 1 to 256"),
    "keys": COUNT,
    "value": COUNT,
    "writes": WRITES,
    "popularity": ("zipf|uniform", "zipf or uniform"),
    "wait": ("spin|sleep", "spin or sleep"),
    "seed": COUNT,
    "units": COUNT,
    "connect": (".+", "the path of a socket"),
}


def misread(workload: Workload) -> str:
    """Which of its options its program would not take, and what it takes; "" where there is none."""
    if workload.environment != NATIVE:
        return ""
    if is_service := workload.words[:1] == [SERVICE]:
        for name in workload.options:
            if name not in EXPECTED_OF_SERVICE:
                return f"has 'options.{name}', which {SERVICE} does not have; it has {', '.join(EXPECTED_OF_SERVICE)}"
    for name, (form, expected) in (EXPECTED_OF_SERVICE if is_service else EXPECTED).items():
        written = workload.options.get(name, False)
        if written is False or "{" in str(written):  # left out, or filled in later
            continue
        if written is True or re.fullmatch(form, str(written), re.ASCII) is None:
            return f"has 'options.{name}: {written}', but expected {expected}"
    return ""
